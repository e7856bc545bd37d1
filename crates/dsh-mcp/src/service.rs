//! One connection from its first byte until nothing of it is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dsh_agent::{Agent, AgentHandle, AgentSpec};
use dsh_agent_core::{AgentCore, Served, ServiceContext};
use dsh_scope::{Scope, within};
use dsh_session::SessionId;
use rmcp::ServiceExt;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::Calls;
use crate::error::ServeError;
use crate::handler::{Guarded, Handler};
use crate::resources::TaskView;
use crate::transport::Wire;
use crate::watch::{Audience, Subscriptions, Ticks, tell_of_changes};
use crate::writer::Writer;

/// How many messages may wait to be written before whoever has the next one waits, too.
const OUTBOX: usize = 64;

/// How long the end waits for calls that were cancelled. Every tool of ours ends sooner; one that does not must not keep
/// the process.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves one MCP client over a pair of streams, as one agent of its own, and returns when nothing that the agent
/// owned is left.
///
/// The connection is over when `input` ends, when a write to `output` fails, when `stop` is cancelled, or when the
/// services are shut down. Then, at once, every call in flight is cancelled and the agent is disposed, which ends its
/// tasks; calls that were being served may still be answered for a moment, but nothing counts as delivered. Cancelling
/// `stop` when the connection is over for another reason takes the grace from what is being ended.
///
/// # Errors
///
/// [`ServeError`] when the connection could not be set up. What goes wrong later is an answer to the client, or the
/// end of the connection.
///
/// # Cancel safety
///
/// None: cancel `stop` instead. When the future is dropped, calls are cancelled and the agent's tasks are told to end,
/// but nobody waits for them before the services are shut down.
pub async fn serve<R, W>(
    core: &AgentCore,
    input: R,
    output: W,
    stop: CancellationToken,
) -> Result<Served, ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let connection = Connection::open(core.context())?;
    let impatient = core.hurry_when_stopped(connection.calls.clone().over(), stop.clone().cancelled_owned());
    tokio::select! {
        served = connection.run(input, output, stop) => Ok(served),
        never = impatient => match never {},
    }
}

struct Connection {
    scope: Scope,
    owner: AgentHandle,
    calls: Calls,
    running: TaskTracker,
    handler: Handler,
}

impl Connection {
    fn open(context: &ServiceContext) -> Result<Self, ServeError> {
        let instructions = context
            .prompts
            .assemble()
            .map_err(|error| ServeError::Instructions(error.to_string()))?;
        let closed = |error: &dyn std::fmt::Display| ServeError::Closed(error.to_string());
        let scope = context
            .scope
            .child("mcp connection")
            .map_err(|error| closed(&error))?;
        let owner = context.agents.create(AgentSpec {
            id: next_session(),
            // Where the client has started this program.
            cwd: std::env::current_dir().ok(),
            within: scope.clone(),
        })?;
        let composed = context.compose(owner.agent());
        composed.map_err(|error| ServeError::Compose(error.to_string()))?;
        let calls = Calls::new();
        let ticks = Ticks::new();
        let agent = Arc::clone(owner.agent());
        follow_changes(context, &scope, &agent, ticks.clone()).map_err(|error| closed(&error))?;
        let handler = Handler {
            info: server_info(instructions),
            tools: context.tools.clone(),
            calls: calls.clone(),
            view: TaskView::new(context.tasks.clone(), Arc::clone(&agent)),
            agent,
            ticks,
            subscriptions: Subscriptions::default(),
        };
        Ok(Self {
            scope,
            owner,
            calls,
            running: TaskTracker::new(),
            handler,
        })
    }

    async fn run<R, W>(self, input: R, output: W, stop: CancellationToken) -> Served
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let Self {
            scope,
            owner,
            calls,
            running,
            handler,
        } = self;
        let _end_if_dropped = EndOnDrop(calls.clone());
        let (outbox, jobs) = mpsc::channel(OUTBOX);
        let writer = Writer::new(output, calls.clone(), Arc::clone(owner.agent())).run(jobs);
        if scope.spawn("mcp writer", writer).is_err() {
            calls.end(Served::Stopped);
        }
        let wire = Wire::new(input, calls.clone(), outbox);
        let protocol = speak(
            Guarded {
                handler,
                running: running.clone(),
            },
            wire,
            &calls,
            &scope,
        );
        let end = async {
            tokio::select! {
                biased;
                () = calls.ended().cancelled() => {}
                () = stop.cancelled() => calls.end(Served::Stopped),
                () = scope.token().cancelled() => calls.end(Served::Stopped),
            }
            dispose(&owner, &running).await;
        };
        tokio::join!(protocol, end);
        if let Err(error) = scope.close().await {
            tracing::error!("mcp: {error}");
        }
        calls.cause().unwrap_or(Served::Stopped)
    }
}

/// Runs the SDK over the wire until there is nothing more to read and all answers are out.
async fn speak<R>(service: Guarded, wire: Wire<R>, calls: &Calls, scope: &Scope)
where
    R: AsyncRead + Send + Unpin + 'static,
{
    let (view, ticks) = (service.handler.view.clone(), service.handler.ticks.clone());
    let subscriptions = service.handler.subscriptions.clone();
    match service.serve(wire).await {
        Ok(running) => {
            // A client that came without `initialize` asks for what it wants to hear by `subscriptions/listen`.
            if running.peer().peer_info().is_some() {
                let audience = Audience::Connection(running.peer().clone(), subscriptions);
                let told = tell_of_changes(view, ticks, audience, calls.ended().clone());
                // Refused only by a scope that is closing, which is the end.
                drop(scope.spawn("mcp resource changes", told));
            }
            if let Err(error) = running.waiting().await {
                tracing::error!("mcp: the protocol loop broke: {error}");
            }
        }
        Err(error) => tracing::info!("mcp: the client left before it said what it wants: {error}"),
    }
    calls.end(Served::Stopped);
}

/// Ends what the agent owns and waits for the calls in flight, which were cancelled.
async fn dispose(owner: &AgentHandle, running: &TaskTracker) {
    running.close();
    let (disposed, over) = tokio::join!(owner.dispose(), within(PATIENCE, running.wait()));
    if let Err(error) = disposed {
        tracing::error!("mcp: {error}");
    }
    if over.is_none() {
        tracing::error!(
            "mcp: {} cancelled calls did not end within {PATIENCE:?}",
            running.len()
        );
    }
}

/// Lets the registry's change feed tick for what concerns this agent.
fn follow_changes(
    context: &ServiceContext,
    scope: &Scope,
    agent: &Agent,
    ticks: Ticks,
) -> Result<(), impl std::fmt::Display + use<>> {
    let session = agent.id().clone();
    context
        .tasks
        .on_change(scope, move |owner| {
            if owner.is_none_or(|owner| *owner == session) {
                ticks.tick();
            }
        })
        .map(drop)
}

fn server_info(instructions: String) -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_resources_list_changed()
        .build();
    let info = ServerConfig::new(capabilities)
        .with_server_info(Implementation::new("dsh", env!("CARGO_PKG_VERSION")));
    match instructions.is_empty() {
        true => info,
        false => info.with_instructions(instructions),
    }
}

/// A session id that no other connection of this process has, and no other process on this machine.
fn next_session() -> SessionId {
    static CONNECTIONS: AtomicU64 = AtomicU64::new(1);
    let connection = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    SessionId::new(format!("mcp-{}-{connection}", std::process::id()))
}

/// Cancels the calls of a connection whose future was dropped.
struct EndOnDrop(Calls);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(Served::Stopped);
    }
}
