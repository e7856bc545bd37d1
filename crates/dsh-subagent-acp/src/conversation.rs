//! The conversation with one agent: from its first word until its process is gone.

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, Implementation, InitializeRequest, NewSessionRequest, PromptRequest,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionNotification,
};
use agent_client_protocol::{
    Agent, Channel, Client, Error, ErrorCode, JsonRpcRequest, is_connection_terminated,
    is_incoming_transport_closed, on_receive_notification, on_receive_request,
};
use dsh_scope::Scope;
use dsh_subagent::StopReason;
use dsh_subagent_process::{Failure, LineError, Product, ReleaseError, Streams, log_lines};
use dsh_subprocess::LeaderExit;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::Permission;
use crate::failure::{Category, Stage, failure};
use crate::turn::{Said, Turn};
use crate::wire::{self, REQUESTS};

/// How long an agent may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Graces {
    /// To end by itself, when its input has ended.
    pub(crate) eof: Duration,
    /// To end when it is told to, and for its exit when it stops to talk.
    pub(crate) end: Duration,
}

/// A running agent that is spoken to. Clones are one conversation.
#[derive(Clone)]
pub(crate) struct Conversation {
    agent: ConnectionTo<Agent>,
    turn: Arc<Turn>,
    product: Product,
    graces: Graces,
    /// Nothing more is said to it.
    leave: CancellationToken,
    /// Nothing more is heard of it.
    gone: CancellationToken,
}

impl Conversation {
    /// Listens to an agent, in `scope`; what it writes for people is logged under the name.
    pub(crate) async fn begin(
        name: &str,
        scope: &Scope,
        (product, streams): (Product, Streams),
        permission: Permission,
        graces: Graces,
    ) -> Result<Self, Failure> {
        let turn = Arc::new(Turn::new(permission));
        let (leave, gone) = (CancellationToken::new(), CancellationToken::new());
        let (told, connected) = oneshot::channel();
        let (ours, theirs) = Channel::duplex();
        let (frames, messages) = ours.into_parts();
        let heard = Arc::clone(&turn);
        let speaking = speak(theirs, Arc::clone(&turn), leave.clone(), told);
        let (over, log) = (gone.clone(), name.to_owned());
        let listening = async move {
            let places = Semaphore::new(REQUESTS);
            let reading = async {
                let read = wire::read(streams.stdout, &places, |frame| {
                    // When nobody takes messages any more, they are still read: nothing waits for a reader.
                    let _ = messages.unbounded_send(frame);
                });
                if let Err(error) = read.await {
                    tracing::debug!("subagent-acp: {error}");
                    if matches!(error, LineError::TooLong) {
                        heard.overrun();
                    }
                }
                // Whoever waits for an answer is told now.
                drop(messages);
            };
            let all = async {
                tokio::join!(
                    speaking,
                    wire::write(streams.stdin, &places, frames),
                    reading,
                    log_lines(&log, streams.stderr, |_| {})
                )
            };
            tokio::select! {
                _ = all => {}
                () = over.cancelled() => {}
            }
        };
        let unheard = || failure(Stage::Process, Category::Unknown);
        if let Err(closed) = scope.spawn(format!("acp agent {name}"), listening) {
            return Err(unheard().caused_by(closed.to_string()));
        }
        let agent = connected.await.map_err(|error| unheard().caused_by(error))?;
        Ok(Self {
            agent,
            turn,
            product,
            graces,
            leave,
            gone,
        })
    }

    /// Has a session, and returns its id, if the agent names it.
    pub(crate) async fn open(&self, cwd: PathBuf) -> Result<Option<SessionId>, Failure> {
        let about = Implementation::new("dsh", env!("CARGO_PKG_VERSION"));
        let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(about);
        self.ask(Stage::Initialize, hello).await?;
        let session = self.ask(Stage::SessionNew, NewSessionRequest::new(cwd)).await?;
        let id = session["sessionId"].as_str().filter(|id| !id.is_empty());
        Ok(id.map(SessionId::new))
    }

    /// Has the task done, and returns why the agent ended.
    pub(crate) async fn prompt(
        &self,
        session: SessionId,
        task: Vec<ContentBlock>,
    ) -> Result<StopReason, Failure> {
        self.turn.open(session.clone());
        let answer = self.ask(Stage::Prompt, PromptRequest::new(session, task)).await?;
        let failed = |category| Err(failure(Stage::Prompt, category));
        match answer["stopReason"].as_str() {
            Some("end_turn") if self.said().cut => failed(Category::AnswerTooLong),
            Some("end_turn") => Ok(StopReason::Completed),
            Some("max_tokens") => Ok(StopReason::MaxTokens),
            Some("refusal") => Ok(StopReason::Refusal),
            Some("cancelled") => Ok(StopReason::Aborted),
            Some("max_turn_requests") => failed(Category::MaxTurnRequests),
            Some(_) => failed(Category::UnknownStopReason),
            None => failed(Category::InvalidResponse),
        }
    }

    /// What was said in the turn so far.
    pub(crate) fn said(&self) -> Said {
        self.turn.said()
    }

    /// How the process ended, if it has.
    pub(crate) fn exited(&self) -> Option<LeaderExit> {
        self.product.exited()
    }

    /// Asks for the end of the turn, if it is open.
    pub(crate) fn interrupt(&self) {
        if let Some(session) = self.turn.close() {
            // An agent that does not hear it is ended with its process.
            let _ = self.agent.send_notification(CancelNotification::new(session));
        }
    }

    /// Lets the agent end by itself, ends what is left then, and returns when nothing is.
    pub(crate) async fn end(&self) -> Result<(), ReleaseError> {
        self.interrupt();
        self.leave.cancel();
        // One that does not end by itself is told to.
        tokio::select! {
            _ = self.product.exit() => {}
            () = sleep(self.graces.eof) => {}
            () = self.product.hurried() => {}
        }
        let released = self.product.release().await;
        self.gone.cancel();
        released
    }

    /// Sends a request, and returns the answer. With the answer the turn is over.
    async fn ask(&self, stage: Stage, request: impl JsonRpcRequest) -> Result<Value, Failure> {
        let (told, answer) = oneshot::channel();
        let turn = Arc::clone(&self.turn);
        let asked = request.to_untyped_message().and_then(|request| {
            let sent = self.agent.send_request(request);
            // A future that is awaited would send more than `session/cancel` when it is dropped.
            sent.on_receiving_result(move |result| {
                turn.close();
                let _ = told.send(result);
                ready(Ok(()))
            })
        });
        asked.map_err(|error| failure(stage, Category::OutputClosed).caused_by(error))?;
        let silence = async {
            self.product.exit().await;
            // What it said last may still be on its way; what it left running may keep its output open.
            sleep(self.graces.end).await;
        };
        let answer = tokio::select! {
            biased;
            answer = answer => answer.ok(),
            () = silence => None,
        };
        let (category, cause) = match answer {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => (category_of(&error, stage), Some(error)),
            None => (Category::OutputClosed, None),
        };
        // One that closed its output has ended, or ends now.
        let (category, exit) = match category {
            Category::OutputClosed if self.turn.is_overrun() => (Category::LineTooLong, None),
            Category::OutputClosed => match timeout(self.graces.end, self.product.exit()).await {
                Ok(exit) => (Category::ProcessExit, Some(exit)),
                Err(_) => (Category::OutputClosed, None),
            },
            told => (told, None),
        };
        let failure = failure(stage, category).with_exit(exit);
        Err(match cause {
            Some(error) => failure.caused_by(error),
            None => failure,
        })
    }
}

fn category_of(error: &Error, stage: Stage) -> Category {
    if is_incoming_transport_closed(error) || is_connection_terminated(error) {
        Category::OutputClosed
    } else if error.code == ErrorCode::AUTH_REQUIRED {
        Category::AuthenticationRequired
    } else if matches!(stage, Stage::Initialize) && error.code == ErrorCode::INVALID_REQUEST {
        // So says the SDK of a version that it does not speak, and so may an agent.
        Category::ProtocolVersion
    } else {
        Category::ErrorResponse(error.code.value())
    }
}

/// Speaks the protocol until it is left.
async fn speak(
    wire: Channel,
    turn: Arc<Turn>,
    leave: CancellationToken,
    told: oneshot::Sender<ConnectionTo<Agent>>,
) {
    let heard = Arc::clone(&turn);
    let spoken = Client
        .v1()
        .name("dsh")
        .on_receive_notification(
            async move |update: SessionNotification, _| {
                heard.hear(update);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                responder.respond(RequestPermissionResponse::new(turn.decide(&request)))
            },
            on_receive_request!(),
        )
        .connect_with(wire, async move |agent: ConnectionTo<Agent>| {
            // Who began it waits for this.
            let _ = told.send(agent);
            leave.cancelled().await;
            Ok(())
        })
        .await;
    if let Err(error) = spoken {
        tracing::debug!("subagent-acp: the protocol broke: {error}");
    }
}
