//! `dsh demo`: one agent at work with background tasks, through the real tools and real processes.
//!
//! The story is fixed, the facts are not: every claim that the transcript makes is checked against what the
//! system itself says, and the exit code is 0 only if all of them held.

mod checksum;
mod facts;
mod story;
mod transcript;

use dsh_agent::AgentSpec;
use dsh_agent_core::{AgentCore, Config};
use dsh_llm::ModelRegistry;
use dsh_session::SessionId;

use crate::Failure;
use crate::services;
use crate::signals::{Hangup, Signals};
use facts::Facts;
use story::Story;

/// Runs the demonstration and returns its exit code: 0 when everything it showed was true, else 1; 130 or 143
/// after a signal.
pub(crate) async fn run(config: Config, hangup: Hangup) -> Result<u8, Failure> {
    let (signals, watcher) = Signals::listen(hangup)?;
    let core = services::assemble(config, ModelRegistry::new())?;
    let work = async {
        let told = tokio::select! {
            told = tell(&core) => Some(told),
            () = signals.stop.cancelled() => None,
        };
        core.shutdown().await;
        told
    };
    let told = tokio::select! {
        told = work => told,
        never = watcher => match never {},
        never = signals.hurry_when_told(&core) => match never {},
    };
    match told {
        None => Ok(signals.exit_code()),
        Some(facts) => {
            // With the services go the processes that guard commands.
            drop(core);
            Ok(conclude(facts?).await?)
        }
    }
}

/// Checks what can only be checked after the end, prints every fact, and turns them into an exit code.
async fn conclude(mut facts: Facts) -> std::io::Result<u8> {
    facts.everything_is_gone().await;
    facts.print()?;
    Ok(u8::from(!facts.all_hold()))
}

/// Creates the agent, lets it act, and ends it.
async fn tell(core: &AgentCore) -> Result<Facts, DemoError> {
    let context = core.context();
    let handle = context.agents.create(AgentSpec {
        id: SessionId::new("demo"),
        cwd: std::env::current_dir().ok(),
        within: context.scope.clone(),
    })?;
    let facts = Story::new(context, handle.agent()).tell().await;
    handle.dispose().await?;
    facts
}

/// Why the demonstration could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The agent could not be made.
    #[error("cannot create the agent: {0}")]
    Agent(#[from] dsh_agent::AgentError),
    /// The registry refused the producer.
    #[error("cannot start the checksum: {0}")]
    Start(#[from] dsh_tasks::StartError),
    /// The agent could not be ended.
    #[error("cannot end the agent: {0}")]
    End(#[from] dsh_scope::CloseError),
    /// Nobody can read the transcript.
    #[error("cannot write to stdout: {0}")]
    Output(#[from] std::io::Error),
    /// A tool answered something else than the id of a new task.
    #[error("no task was started: {0}")]
    NotStarted(String),
}
