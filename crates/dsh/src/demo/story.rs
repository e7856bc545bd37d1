//! The demonstration as it goes on: what is claimed at which moment.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::Agent;
use dsh_agent_core::ServiceContext;
use dsh_llm::text_of;
use dsh_session::{Event, EventData, Message, MessageSource, TurnEnd, TurnTrigger};
use dsh_tasks::TaskId;

use super::DemoError;
use super::facts::Facts;
use super::script::{BUILD_ID, SERVER_ID};

/// How long the server may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(30);

/// One agent at work.
pub(super) struct Story<'a> {
    context: &'a ServiceContext,
    agent: &'a Arc<Agent>,
    gate: PathBuf,
    /// How each turn began and ended.
    turns: Vec<(TurnTrigger, Option<TurnEnd>)>,
    /// What it was told by a person, and by the registry.
    asked: usize,
    notices: Vec<Message>,
    facts: Facts,
}

impl<'a> Story<'a> {
    pub(super) fn new(context: &'a ServiceContext, agent: &'a Arc<Agent>, gate: PathBuf) -> Self {
        Self {
            context,
            agent,
            gate,
            turns: Vec::new(),
            asked: 0,
            notices: Vec::new(),
            facts: Facts::default(),
        }
    }

    /// Takes what has just happened, and checks what it claims.
    pub(super) async fn goes_on(&mut self, event: &Event) -> Result<(), DemoError> {
        match &event.data {
            EventData::TurnStart { trigger, .. } => self.turns.push((*trigger, None)),
            EventData::TurnEnd { reason, .. } => self.turn_ends(reason).await?,
            EventData::UserMessage(message) => match message.source {
                MessageSource::User => self.asked += 1,
                MessageSource::Plugin { .. } => self.notices.push(message.clone()),
            },
            EventData::ToolResult { content, .. } => self.answered(&text_of(content)),
            EventData::StepStart { .. }
            | EventData::StepEnd { .. }
            | EventData::RequestHeader { .. }
            | EventData::ModelChoice { .. }
            | EventData::AssistantMessage { .. }
            | EventData::ToolCall { .. } => {}
        }
        Ok(())
    }

    /// Whether nothing is left to do: a second turn has ended, or one has failed.
    pub(super) fn is_over(&self) -> bool {
        let ends: Vec<_> = self.turns.iter().filter_map(|(_, end)| end.as_ref()).collect();
        ends.len() == 2 || ends.iter().any(|end| **end != TurnEnd::Completed)
    }

    /// What it claims, with what can be said at its end.
    pub(super) fn facts(mut self) -> Facts {
        let completed = |trigger| (trigger, Some(TurnEnd::Completed));
        let expected = [completed(TurnTrigger::Message), completed(TurnTrigger::Notice)];
        self.facts.check(
            "the notice woke the agent: its second turn has no message of a person",
            self.turns == expected && self.asked == 1,
        );
        let told = |id: &str| {
            let about = |message: &&Message| match &message.source {
                MessageSource::Plugin { subjects, .. } => subjects.iter().any(|subject| subject == id),
                MessageSource::User => false,
            };
            self.notices.iter().filter(about).count()
        };
        let once = told(BUILD_ID) == 1 && told(SERVER_ID) == 0;
        self.facts.check(
            "each end was told once: the build's by a notice, the server's to who waited for it",
            once && self.agent.inbox().pending() == 0,
        );
        self.facts
    }

    async fn turn_ends(&mut self, reason: &TurnEnd) -> Result<(), DemoError> {
        if let Some((_, end)) = self.turns.last_mut() {
            *end = Some(reason.clone());
        }
        if self.turns.len() > 1 {
            return Ok(());
        }
        self.facts.check(
            "the first turn was over while the build and the server were running",
            self.is_running(BUILD_ID) && self.is_running(SERVER_ID),
        );
        // From here on nothing but the end of the build can make the agent work again.
        let said = self.server_is_up().await;
        self.facts.watch_pids(&said);
        File::create(&self.gate)?;
        Ok(())
    }

    /// A tool has answered.
    fn answered(&mut self, said: &str) {
        if said.starts_with("meanwhile: 42") {
            let beside = self.is_running(BUILD_ID) && self.is_running(SERVER_ID);
            self.facts
                .check("a foreground command ran while both tasks were running", beside);
        } else if said.contains("build finished") {
            let all = "fetch\ncompile\nlink\nbuild finished\n[status: completed, exit code: 0]";
            self.facts
                .check("the output of the build is all there", said == all);
        } else if said.contains("[status: killed") {
            let as_asked = said.ends_with("[status: killed, signal: SIGTERM]");
            self.facts
                .check("the server ended by the signal it was sent", as_asked);
            self.facts.both_pids_are_gone();
        }
    }

    fn is_running(&self, id: &str) -> bool {
        let task = self.context.tasks.get(&TaskId::from(id), Some(self.agent));
        task.is_ok_and(|task| !task.status.is_terminal())
    }

    /// Waits until the server has said who it and its worker are, and returns that; nothing if it does not. Looking at it
    /// consumes nothing.
    async fn server_is_up(&self) -> String {
        let id = TaskId::from(SERVER_ID);
        let up = async {
            loop {
                let said = self.context.tasks.observe(&id, Some(self.agent), 0, 4096);
                match said {
                    Ok(said) if said.text.contains("worker pid") => return said.text,
                    Ok(_) | Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, up).await.unwrap_or_default()
    }
}
