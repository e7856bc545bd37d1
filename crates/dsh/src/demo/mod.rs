//! `dsh demo`: one agent at work with background tasks, in the real loop, through the real tools and real processes. Only
//! what the model says is written down beforehand.
//!
//! The story is fixed, the facts are not: every claim that the transcript makes is checked against what the
//! system itself says, and the exit code is 0 only if all of them held.

mod facts;
mod script;
mod story;
mod transcript;

use std::sync::Arc;

use dsh_agent_core::{AgentCore, Composition, Config};
use dsh_llm::ModelRegistry;
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{Message, Session, SessionId};
use tempfile::TempDir;

use crate::Failure;
use crate::services;
use crate::settings::Settings;
use crate::signals::Signals;
use facts::Facts;
use script::{NAME, PROMPT};
use story::Story;
use transcript::Transcript;

/// Runs the demonstration and returns its exit code: 0 when everything it showed was true, else 1.
pub(crate) async fn run(settings: Settings, signals: &Signals) -> Result<u8, Failure> {
    let config = settings.config;
    let room = tempfile::Builder::new().prefix("dsh-demo-").tempdir()?;
    let script = script::json(config.vocabulary, &room.path().join(script::GATE));
    let model = ScriptedAdapter::from_json(NAME, &script).map_err(DemoError::Script)?;
    let model = Arc::new(model);
    let mut models = ModelRegistry::new();
    // The first one: its name cannot be taken.
    let _ = models.register(NAME, model.clone());
    // The story needs wakes, room for two tasks, and nobody who is asked.
    let config = Config {
        vocabulary: config.vocabulary,
        bash: config.bash,
        ..Config::default()
    };
    let settings = Settings {
        config,
        composition: Composition::default(),
        ..settings
    };
    let core = services::assemble(settings, models).await?;
    let work = async {
        let told = tokio::select! {
            told = tell(&core, &room) => Some(told),
            () = signals.stop.cancelled() => None,
        };
        core.shutdown().await;
        told
    };
    let told = tokio::select! {
        told = work => told,
        never = signals.hurry_when_told(&core) => match never {},
    };
    let mut facts = told.ok_or(Failure::Stopped)??;
    facts.check(
        "the model said all that was written down, when it was due",
        model.finish().is_ok(),
    );
    // With the services go the processes that guard commands.
    drop(core);
    facts.everything_is_gone().await;
    facts.print()?;
    Ok(u8::from(!facts.all_hold()))
}

/// Creates the agent, asks it once, and watches it until it has nothing left to do.
async fn tell(core: &AgentCore, room: &TempDir) -> Result<Facts, DemoError> {
    let context = core.context();
    let session = Session::new(SessionId::new("demo"), std::env::current_dir().ok());
    let led = context.lead(session.clone(), None).await?;
    led.model_seat().set(script::model());
    let mut feed = session.subscribe();
    let transcript = Transcript::new(context.tasks.vocabulary());
    let mut story = Story::new(context, led.agent(), room.path().join(script::GATE));
    led.agent().follow_up(Message::user(PROMPT))?;
    while !story.is_over() {
        for event in feed.next().await {
            transcript.show(&event)?;
            story.goes_on(&event).await?;
        }
    }
    let facts = story.facts();
    led.dispose().await?;
    Ok(facts)
}

/// Why the demonstration could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// What the model says is no script.
    #[error("the script is broken: {0}")]
    Script(#[from] dsh_llm_scripted::ScriptError),
    /// The agent could not be made.
    #[error("cannot create the agent: {0}")]
    Agent(#[from] dsh_agent_loop::CreateError),
    /// The agent could not be asked.
    #[error("cannot ask the agent: {0}")]
    Ask(#[from] dsh_agent::AgentDisposed),
    /// The agent could not be ended.
    #[error("cannot end the agent: {0}")]
    End(#[from] dsh_scope::CloseError),
    /// Nobody can read the transcript.
    #[error("cannot write to stdout: {0}")]
    Output(#[from] std::io::Error),
}
