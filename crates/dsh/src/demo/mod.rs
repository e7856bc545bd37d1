//! `dsh demo`: one agent at work with background tasks, through the real tools and real processes.
//!
//! The story is fixed, the facts are not: every claim that the transcript makes is checked against what the
//! system itself says, and the exit code is 0 only if all of them held.

mod facts;
mod report;
mod transcript;

use std::sync::Arc;

use dsh_agent::AgentSpec;
use dsh_agent_core::{AgentCore, Config};
use dsh_session::SessionId;
use serde_json::json;

use crate::Failure;
use crate::signals::Signals;
use facts::Facts;
use transcript::Transcript;

/// A short build: it prints, takes a moment, and ends by itself.
const BUILD: &str =
    "for step in fetch compile link; do echo \"$step\"; sleep 0.2; done; echo 'build finished'";

/// A server with a child of its own, both of which say who they are and would go on for ten minutes.
const SERVER: &str = "echo \"server pid $$\"; sleep 600 & echo \"worker pid $!\"; wait";

/// Runs the demonstration and returns its exit code: 0 when everything it showed was true, else 1; 130 or 143
/// after a signal.
pub(crate) async fn run(config: Config) -> Result<u8, Failure> {
    let (signals, watcher) = Signals::listen()?;
    let core = AgentCore::assemble(config)?;
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
        Some(facts) => Ok(conclude(facts?)),
    }
}

/// Checks what can only be checked after the end, prints every fact, and turns them into an exit code.
fn conclude(mut facts: Facts) -> u8 {
    facts.everything_is_gone();
    facts.print();
    u8::from(!facts.all_hold())
}

/// The story itself.
async fn tell(core: &AgentCore) -> Result<Facts, DemoError> {
    let context = core.context();
    let words = context.tasks.vocabulary();
    let handle = context.agents.create(AgentSpec {
        id: SessionId::new("demo"),
        cwd: std::env::current_dir().ok(),
        within: context.scope.clone(),
    })?;
    let agent = handle.agent();
    let mut transcript = Transcript::new(agent, &context.tools);
    let mut facts = Facts::default();

    transcript.chapter("Two commands go to the background; the agent is not held up.");
    let build = transcript.start("Build the project", BUILD).await?;
    let server = transcript.start("Start the server", SERVER).await?;

    transcript.chapter("Meanwhile it does something else.");
    let meanwhile = transcript
        .call(
            "bash",
            json!({"command": "echo \"meanwhile: $((6 * 7))\"", "description": "Do some arithmetic"}),
        )
        .await;
    facts.check(
        "the foreground command ran while two tasks were running",
        meanwhile.contains("meanwhile: 42"),
    );

    transcript.chapter("It is told that the build finished, without having asked.");
    let notice = transcript.notice().await;
    facts.check("the notice is about the build and carries its exit code", {
        notice.contains(&format!("{build} (bash: ")) && notice.contains("[status: completed, exit code: 0]")
    });
    let output = transcript
        .call(words.output_tool(), json!({ words.id_param(): build }))
        .await;
    facts.check(
        "its output is all there",
        output.starts_with("fetch\ncompile\nlink\nbuild finished\n"),
    );

    transcript.chapter("A producer of its own kind: work whose result is there when it is done.");
    let report = report::start(&context.tasks, Arc::clone(agent))?;
    transcript.note(&format!("started {report} through the registry's public API"));
    let result = transcript
        .call(
            words.output_tool(),
            json!({ words.id_param(): report.to_string(), "wait": true }),
        )
        .await;
    facts.check(
        "the wait delivered the final output",
        result.starts_with("2 + 2 is 4, and 6 * 7 is 42"),
    );

    transcript.chapter("The server is no longer needed.");
    let said = transcript
        .call(words.output_tool(), json!({ words.id_param(): server }))
        .await;
    facts.watch_pids(&said);
    transcript
        .call(
            words.kill_tool(),
            json!({ words.id_param(): server, "reason": "the demonstration is over" }),
        )
        .await;
    let end = transcript
        .call(
            words.output_tool(),
            json!({ words.id_param(): server, "wait": true }),
        )
        .await;
    facts.check(
        "the server ended by the signal it was sent",
        end.ends_with("[status: killed, signal: SIGTERM]"),
    );
    facts.both_pids_are_gone();

    let list = transcript.call(words.list_tool(), json!({})).await;
    facts.check("the list shows three finished tasks", {
        list.lines().count() == 3 && !list.contains(" running") && !list.contains(" stopping")
    });
    facts.check("nothing was told twice", agent.inbox().pending() == 0);
    handle.dispose().await?;
    Ok(facts)
}

/// Why the demonstration could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The agent could not be made.
    #[error("cannot create the agent: {0}")]
    Agent(#[from] dsh_agent::AgentError),
    /// The registry refused the producer.
    #[error("cannot start the report: {0}")]
    Start(#[from] dsh_tasks::StartError),
    /// The agent could not be ended.
    #[error("cannot end the agent: {0}")]
    End(#[from] dsh_scope::CloseError),
    /// A tool answered something else than the id of a new task.
    #[error("no task was started: {0}")]
    NotStarted(String),
}
