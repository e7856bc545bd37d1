//! The assembled core in this process, with real commands under guards and an agent that works on its own: a scripted
//! model answers it.

mod page;
mod recorder;
mod waits;

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_agent_core::{AgentCore, Config, Parts, Provider};
use dsh_agent_loop::LedAgent;
use dsh_llm::{ContentBlock, ModelRegistry, text_of};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{EventData, Message, MessageSource, Session, SessionId, TurnEnd, TurnTrigger};
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_testkit::eventually;
use serde_json::{Value, json};

use crate::Room;
use recorder::Recorder;

/// An agent that works on its own, in a room.
pub struct Led {
    /// Where it works.
    pub room: Room,
    /// The services.
    pub core: AgentCore,
    /// The agent.
    pub agent: LedAgent,
    script: Arc<ScriptedAdapter>,
    recorder: Arc<Recorder>,
}

impl Led {
    /// An agent in `room` whose model says `turns`; see [`dsh_llm_scripted`].
    ///
    /// # Panics
    ///
    /// When the script is none, or the services do not fit together.
    pub async fn new(room: Room, mut config: Config, turns: Value) -> Led {
        let script = json!({"turns": turns}).to_string();
        let script = Arc::new(ScriptedAdapter::from_json("scenario", &script).expect("a script"));
        let recorder = Arc::new(Recorder::new(script.clone()));
        let mut models = ModelRegistry::new();
        let provider = Provider::Scripted;
        models
            .register(provider.as_str(), recorder.clone())
            .expect("the first one");
        config.model.provider = provider;
        config.model.name = Some("scenario".to_owned());
        config.bash.grace_ms = 500.0;
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        let launcher = Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there");
        let core = AgentCore::assemble_with(
            config,
            Parts {
                launcher,
                models,
                ..Parts::default()
            },
        )
        .expect("the services fit together");
        let services = core.context();
        services
            .tools
            .register(&services.scope, Arc::new(waits::Waits))
            .expect("a new name");
        let session = Session::new(SessionId::new("session-1"), Some(room.work()));
        let agent = services.lead(session, None).await.expect("the id is free");
        Led {
            room,
            core,
            agent,
            script,
            recorder,
        }
    }

    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        self.agent.agent()
    }

    /// Says something, for a turn of its own.
    ///
    /// # Panics
    ///
    /// When the agent takes nothing any more.
    pub fn say(&self, text: &str) {
        let message = Message {
            content: vec![ContentBlock::text(text)],
            source: MessageSource::User,
        };
        self.agent().follow_up(message).expect("the agent lives");
    }

    /// Says something and waits until the agent rests.
    pub async fn ask(&self, text: &str) {
        self.say(text);
        self.agent().when_idle().await;
    }

    /// Waits until so many turns are over, and the agent rests.
    ///
    /// # Panics
    ///
    /// When they are not within the deadline.
    pub async fn turns(&self, count: usize) {
        eventually(&format!("{count} turns are over"), || self.ends().len() >= count).await;
        self.agent().when_idle().await;
    }

    /// Waits until the model was asked so many times.
    ///
    /// # Panics
    ///
    /// When it is not within the deadline.
    pub async fn asked(&self, count: usize) {
        eventually(&format!("the model is asked {count} times"), || {
            self.recorder.count() >= count
        })
        .await;
    }

    /// Waits until so many notices wait.
    ///
    /// # Panics
    ///
    /// When they do not within the deadline.
    pub async fn pending(&self, count: usize) {
        let inbox = self.agent().inbox();
        eventually(&format!("{count} notices wait"), || inbox.pending() >= count).await;
    }

    /// Waits until a call has begun.
    ///
    /// # Panics
    ///
    /// When it does not within the deadline.
    pub async fn called(&self, id: &str) {
        let begun =
            |data: &EventData| matches!(data, EventData::ToolCall { call_id, .. } if call_id.as_str() == id);
        eventually(&format!("{id} has begun"), || {
            self.agent()
                .session()
                .events()
                .iter()
                .any(|event| begun(&event.data))
        })
        .await;
    }

    /// Why each turn began.
    pub fn triggers(&self) -> Vec<TurnTrigger> {
        let events = self.agent().session().events();
        let trigger = |data: &EventData| match data {
            EventData::TurnStart { trigger, .. } => Some(*trigger),
            _ => None,
        };
        events.iter().filter_map(|event| trigger(&event.data)).collect()
    }

    /// Why each turn ended.
    pub fn ends(&self) -> Vec<TurnEnd> {
        let events = self.agent().session().events();
        let end = |data: &EventData| match data {
            EventData::TurnEnd { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        events.iter().filter_map(|event| end(&event.data)).collect()
    }

    /// The notices that the model was told, in order: the task of each.
    pub fn told(&self) -> Vec<String> {
        let events = self.agent().session().events();
        let subjects = |data: &EventData| match data {
            EventData::UserMessage(Message {
                source: MessageSource::Plugin { form, subjects, .. },
                ..
            }) if form == "notice" => subjects.clone(),
            _ => Vec::new(),
        };
        events.iter().flat_map(|event| subjects(&event.data)).collect()
    }

    /// What a call returned, as the model read it.
    ///
    /// # Panics
    ///
    /// When it has no result.
    pub fn result(&self, id: &str) -> String {
        let events = self.agent().session().events();
        let result = events.iter().find_map(|event| match &event.data {
            EventData::ToolResult { call_id, content, .. } if call_id.as_str() == id => {
                Some(text_of(content))
            }
            _ => None,
        });
        result.unwrap_or_else(|| panic!("{id} has no result"))
    }

    /// How often the model was asked.
    pub fn requests(&self) -> usize {
        self.recorder.count()
    }

    /// The system prompt of the first request.
    ///
    /// # Panics
    ///
    /// When there was none.
    pub fn system(&self) -> String {
        self.recorder.first().header.system.clone()
    }

    /// The log and the conversation, without what differs from run to run.
    pub fn page(&self) -> String {
        page::page(&self.agent().session().events())
    }

    /// Disposes of the agent, shuts the services down, and checks what holds after every scenario: the model was asked
    /// what the log says, and everything that the script has.
    ///
    /// # Panics
    ///
    /// When something of that is not so.
    pub async fn close(self) -> Room {
        self.agent.dispose().await.expect("the agent goes");
        self.core.shutdown().await;
        self.script
            .finish()
            .unwrap_or_else(|misfit| panic!("{misfit}\n{}", self.page()));
        self.recorder.check(&self.agent().session().events());
        self.room
    }
}
