//! One connection from its first byte until nothing of it is left.

use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AuthenticateRequest, AuthenticateResponse, CancelNotification, CloseSessionRequest, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PromptRequest, SetSessionConfigOptionRequest,
};
use agent_client_protocol::{
    Agent, Channel, Client, Result as Spoken, on_receive_notification, on_receive_request,
};
use dsh_agent_core::{AgentCore, Served};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::config::Settings;
use crate::connection::Connection;
use crate::error::ServeError;
use crate::handler::answer;
use crate::wire;

/// Serves one editor over a pair of streams, with an agent for each session that it opens, and returns when nothing that
/// they owned is left.
///
/// The connection is over when `input` ends, when a write to `output` fails, when `stop` is cancelled, or when the
/// services are shut down. Then every session is closed, all at once: open turns are stopped, prompts in flight are
/// answered `cancelled`, background tasks end. Cancelling `stop` when the connection is over for another reason takes the
/// grace from what is being ended.
///
/// # Errors
///
/// [`ServeError`] when the services are being shut down. What goes wrong later is an answer to the editor, or the end of
/// the connection.
///
/// # Panics
///
/// Outside a tokio runtime.
///
/// # Cancel safety
///
/// None: cancel `stop` instead. When the future is dropped, the agents are told to end, but nobody waits for them before
/// the services are shut down.
pub async fn serve<R, W>(
    core: &AgentCore,
    input: R,
    output: W,
    stop: CancellationToken,
    settings: Settings,
) -> Result<Served, ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let context = core.context().clone();
    let scope = context
        .scope
        .child("acp connection")
        .map_err(|error| ServeError::Closed(error.to_string()))?;
    let dropped = CancellationToken::new();
    let _end_if_dropped = dropped.clone().drop_guard();
    let connection = Arc::new(Connection::new(context, scope, settings, dropped));
    let impatient = core.hurry_when_stopped(connection.ending.clone().over(), stop.clone().cancelled_owned());
    tokio::select! {
        served = run(connection, input, output, stop) => Ok(served),
        never = impatient => match never {},
    }
}

async fn run<R, W>(connection: Arc<Connection>, input: R, output: W, stop: CancellationToken) -> Served
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let Connection {
        scope,
        ending,
        places,
        ..
    } = &*connection;
    let (ours, theirs) = Channel::duplex();
    let (frames, requests) = ours.into_parts();
    let writer = wire::write(output, frames, places.clone(), ending.clone());
    if scope.spawn("acp writer", writer).is_err() {
        ending.end(Served::Stopped);
    }
    let reading = async move {
        let (places, ending) = (places.clone(), ending.clone());
        wire::read(input, &places, &ending, |frame| {
            requests.unbounded_send(frame).is_ok()
        })
        .await;
    };
    let speaking = async {
        if let Err(error) = speak(&connection, theirs, &stop).await {
            tracing::error!("acp: the protocol broke: {error}");
        }
        ending.end(Served::Stopped);
        // Whatever broke, what the sessions own is ended.
        connection.close_all().await;
    };
    tokio::join!(reading, speaking);
    if let Err(error) = scope.close().await {
        tracing::error!("acp: {error}");
    }
    ending.cause().unwrap_or(Served::Stopped)
}

/// Runs the SDK until the connection is over and its sessions are closed; what they said last is handed to the writer.
async fn speak(connection: &Arc<Connection>, wire: Channel, stop: &CancellationToken) -> Spoken<()> {
    let [c1, c2, c3, c4, c5, c6, c7, c8] = std::array::from_fn(|_| Arc::clone(connection));
    Agent
        .v1()
        .name("dsh")
        .on_receive_request(
            async move |request: InitializeRequest, responder, _| responder.respond(c1.initialize(&request)),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_: AuthenticateRequest, responder, _| responder.respond(AuthenticateResponse::new()),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, editor| {
                let work = Arc::clone(&c2).new_session(request, editor);
                c2.spawn("acp session/new", answer(responder, work));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest, responder, editor| {
                let work = Arc::clone(&c3).load_session(request, editor);
                c3.spawn("acp session/load", answer(responder, work));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CloseSessionRequest, responder, _| {
                let work = Arc::clone(&c4).close_session(request);
                c4.spawn("acp session/close", answer(responder, work));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, _| c5.prompt(request, responder),
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, _| {
                c6.set_config_option(&request, responder)
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ListSessionsRequest, responder, _| {
                let work = Arc::clone(&c8).list_sessions(request);
                c8.spawn("acp session/list", answer(responder, work));
                Ok(())
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |request: CancelNotification, _| {
                c7.cancel(&request);
                Ok(())
            },
            on_receive_notification!(),
        )
        .connect_with(wire, async |_: ConnectionTo<Client>| {
            connection.over(stop).await;
            connection.close_all().await;
            Ok(())
        })
        .await
}
