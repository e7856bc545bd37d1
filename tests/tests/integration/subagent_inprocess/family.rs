//! The assembled core, somebody who delegates, and a scripted model for each member of the family.
#![expect(clippy::panic, reason = "a test helper that cannot go on ends the test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_agent::{Agent, ModelRoute};
use dsh_agent_core::{AgentCore, Composition, Config, Parts, Provider, ServiceContext};
use dsh_agent_loop::LedAgent;
use dsh_llm::{ModelAdapter, ModelError, ModelRegistry, ModelRequest, ModelStream, text_of};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{EventData, Message, Session, SessionId, TurnEnd};
use dsh_subagent::{Run, StartRequest};
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_tools::{Approval, Approver, PendingCall};
use serde_json::{Value, json};
use tests::Room;
use tokio_util::sync::CancellationToken;

/// Fresh children ask the model `spawn`, forks the model `fork`; who leads asks `lead`.
const PRESET: &str = r#"
[[tools]]
id = "bash"
name = "bash"

[[tools]]
id = "spawn"
name = "subagent"
[tools.config]
provider = "spawn"
[tools.config.agent_options]
model = "spawn"

[[tools]]
id = "fork"
name = "subagent"
[tools.config]
provider = "fork"
tool_name = "subagent_fork"
[tools.config.agent_options]
model = "fork"
"#;

/// Somebody who delegates, in a room.
pub(crate) struct Family {
    pub(crate) room: Room,
    pub(crate) agent: LedAgent,
    pub(crate) core: AgentCore,
    scripts: Arc<Scripts>,
}

/// A script for each model, and what each was asked.
struct Scripts {
    models: BTreeMap<String, ScriptedAdapter>,
    requests: Mutex<Vec<Arc<ModelRequest>>>,
}

/// Allows everything.
struct Generous;

impl Family {
    /// Whose models say these turns; see [`dsh_llm_scripted`].
    pub(crate) async fn new(scripts: &[(&str, Value)]) -> Family {
        Self::configured(Config::default(), scripts).await
    }

    pub(crate) async fn configured(mut config: Config, scripts: &[(&str, Value)]) -> Family {
        let room = Room::new();
        let script = |(name, turns): &(&str, Value)| {
            let script = json!({ "turns": turns }).to_string();
            let model = ScriptedAdapter::from_json(*name, &script).expect("a script");
            ((*name).to_owned(), model)
        };
        let scripts = Arc::new(Scripts {
            models: scripts.iter().map(script).collect(),
            requests: Mutex::default(),
        });
        let mut models = ModelRegistry::new();
        let provider = Provider::Scripted;
        models
            .register(provider.as_str(), scripts.clone())
            .expect("the first one");
        config.model.provider = provider;
        config.model.name = Some("lead".to_owned());
        config.bash.grace_ms = 500.0;
        let presets = room.home().join("presets");
        std::fs::create_dir(&presets).expect("a directory");
        std::fs::write(presets.join("family.toml"), PRESET).expect("a preset");
        let composition = Composition::load(Some(&room.home()), None, Some("family"));
        let helper =
            std::env::var_os("DSH_GUARD").expect("DSH_GUARD names the helper: run `cargo xtask test`");
        let parts = Parts {
            launcher: Launcher::guarded(GuardConfig::helper(helper)).expect("the helper is there"),
            models,
            composition: composition.expect("a preset"),
            ..Parts::default()
        };
        let core = AgentCore::assemble_with(config, parts).expect("the services fit together");
        let session = Session::new(SessionId::new("lead"), Some(room.work()));
        let agent = core.context().lead(session, Some(Arc::new(Generous))).await;
        Family {
            room,
            agent: agent.expect("the id is free"),
            core,
            scripts,
        }
    }

    pub(crate) fn context(&self) -> &ServiceContext {
        self.core.context()
    }

    pub(crate) fn lead(&self) -> &Arc<Agent> {
        self.agent.agent()
    }

    /// Says something to who leads.
    pub(crate) fn say(&self, text: &str) {
        self.lead().follow_up(Message::user(text)).expect("it lives");
    }

    /// Says something, and waits until who leads rests.
    pub(crate) async fn ask(&self, text: &str) {
        self.say(text);
        self.lead().when_idle().await;
    }

    /// A fresh child that was asked for a result in this shape.
    pub(crate) async fn structured(&self, schema: Value) -> Run {
        let request = StartRequest {
            output_schema: Some(schema),
            model: Some(ModelRoute {
                model: Some("spawn".to_owned()),
                ..ModelRoute::default()
            }),
            ..StartRequest::new("the task", self.lead().clone(), CancellationToken::new())
        };
        let started = self.context().subagents.start("spawn", request).await;
        started.expect("it starts")
    }

    /// What this model was asked.
    pub(crate) fn requests(&self, model: &str) -> Vec<Arc<ModelRequest>> {
        let requests = self.scripts.requests();
        let of_it = requests.iter().filter(|request| request.header.model == model);
        of_it.cloned().collect()
    }

    /// What a call of who leads returned, as the model read it.
    pub(crate) fn result(&self, id: &str) -> String {
        result(self.lead(), id)
    }

    /// Why each turn of who leads ended.
    pub(crate) fn ends(&self) -> Vec<TurnEnd> {
        ends(self.lead())
    }

    /// Ends everything, whatever was said.
    pub(crate) async fn abandon(self) {
        self.agent.dispose().await.expect("it goes");
        self.core.shutdown().await;
    }

    /// Ends everything. Everything that was written down was said.
    pub(crate) async fn close(self) -> Room {
        self.agent.dispose().await.expect("it goes");
        self.core.shutdown().await;
        for model in self.scripts.models.values() {
            model.finish().unwrap_or_else(|misfit| {
                let events = self.agent.agent().session().events();
                panic!("{misfit}\n{events:#?}")
            });
        }
        self.room
    }
}

/// What a call returned, as the model read it.
pub(crate) fn result(agent: &Agent, id: &str) -> String {
    let events = agent.session().events();
    let result = events.iter().find_map(|event| match &event.data {
        EventData::ToolResult { call_id, content, .. } if call_id.as_str() == id => Some(text_of(content)),
        _ => None,
    });
    result.unwrap_or_else(|| panic!("{id} has no result"))
}

/// Why each turn ended.
pub(crate) fn ends(agent: &Agent) -> Vec<TurnEnd> {
    let events = agent.session().events().into_iter();
    events
        .filter_map(|event| match event.data {
            EventData::TurnEnd { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}

/// A call of a tool.
pub(crate) fn calls(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// Delegates, and waits.
pub(crate) fn delegates(tool: &str, prompt: &str) -> Value {
    calls(tool, json!({"description": "the label", "prompt": prompt}))
}

/// Delegates, and goes on.
pub(crate) fn delegates_in_background(prompt: &str) -> Value {
    let task = json!({"description": "the label", "prompt": prompt, "run_in_background": true});
    calls("subagent", task)
}

/// Runs a command.
pub(crate) fn runs(command: &str) -> Value {
    calls("bash", json!({"command": command, "description": "work"}))
}

/// Starts a command.
pub(crate) fn starts(command: &str) -> Value {
    calls(
        "bash",
        json!({"command": command, "description": "serve", "run_in_background": true}),
    )
}

/// Says this, and is done.
pub(crate) fn says(text: &str) -> Value {
    json!({ "text": text })
}

impl Scripts {
    fn requests(&self) -> MutexGuard<'_, Vec<Arc<ModelRequest>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelAdapter for Scripts {
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        self.requests().push(Arc::clone(&request));
        match self.models.get(&request.header.model) {
            Some(model) => model.send(request, token).await,
            None => Err(ModelError::lasting("NO_SCRIPT", request.header.model.clone())),
        }
    }
}

#[async_trait]
impl Approver for Generous {
    async fn ask(&self, _: &PendingCall) -> Approval {
        Approval::Allowed
    }
}
