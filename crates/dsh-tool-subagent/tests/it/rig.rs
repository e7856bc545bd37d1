//! Everything the tool joins, on one scope, and one agent that calls it.

use std::sync::{Arc, Mutex};

use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_llm::{CallId, text_of};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_subagent::SubagentRegistry;
use dsh_tasks::{BoxFuture, Serves, TaskDone, TaskId, TaskRegistry, TasksConfig, Vocabulary};
use dsh_testkit::eventually;
use dsh_tool_subagent::{Deps, Handle, ToolSubagentConfig, install};
use dsh_tools::{ToolContext, ToolRegistry, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scripted::{Script, Scripted};

pub(crate) struct Rig {
    pub(crate) scope: Scope,
    pub(crate) agents: AgentRegistry,
    pub(crate) tools: ToolRegistry,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) tasks: TaskRegistry,
    pub(crate) parent: AgentHandle,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let rig = Self::without_surface(Vocabulary::Task);
        rig.attach_surface();
        rig
    }

    pub(crate) fn without_surface(vocabulary: Vocabulary) -> Self {
        let scope = Scope::root("rig");
        let agents = AgentRegistry::new();
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let config = TasksConfig {
            vocabulary,
            ..TasksConfig::default()
        };
        let tasks = TaskRegistry::install(&scope, deps, config).unwrap();
        let parent = agent(&agents, &scope, "parent");
        Self {
            scope,
            agents,
            tools: ToolRegistry::new(),
            subagents: SubagentRegistry::new(),
            tasks,
            parent,
        }
    }

    pub(crate) fn attach_surface(&self) {
        self.tasks
            .attach_surface(&self.scope, "test", Serves::Everyone)
            .unwrap();
    }

    /// A provider `helper` with this script, and the tool `subagent` for it.
    pub(crate) fn with(script: Script) -> (Self, Scripted) {
        let rig = Self::new();
        let provider = rig.provide("helper", script);
        rig.install(ToolSubagentConfig::new("helper"));
        (rig, provider)
    }

    pub(crate) fn provide(&self, name: &str, script: Script) -> Scripted {
        self.provide_on(&self.scope, name, script)
    }

    pub(crate) fn provide_on(&self, scope: &Scope, name: &str, script: Script) -> Scripted {
        let provider = script.provider();
        self.subagents
            .register(scope, name, Arc::new(provider.clone()))
            .unwrap();
        provider
    }

    pub(crate) fn deps(&self) -> Deps {
        Deps {
            tools: self.tools.clone(),
            subagents: self.subagents.clone(),
            tasks: Some(self.tasks.clone()),
        }
    }

    pub(crate) fn install(&self, config: ToolSubagentConfig) -> Handle {
        install(&self.scope, self.deps(), config).unwrap()
    }

    pub(crate) fn agent(&self, id: &str) -> AgentHandle {
        agent(&self.agents, &self.scope, id)
    }

    pub(crate) fn tool_names(&self) -> Vec<String> {
        let tools = self.tools.definitions();
        tools.into_iter().map(|tool| tool.name).collect()
    }

    pub(crate) async fn until_tools(&self, names: &[&str]) {
        eventually(&format!("the tools {names:?}"), || self.tool_names() == names).await;
    }

    pub(crate) async fn execute(&self, tool: &str, args: Value, token: CancellationToken) -> ToolResult {
        let ctx = ToolContext {
            caller: Some(Arc::clone(self.parent.agent())),
            token,
            call_id: CallId::new("call-1"),
        };
        self.tools.execute(tool, args, ctx).await
    }

    /// The text of a call whose result reaches the model.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> String {
        let result = self.execute(tool, args, CancellationToken::new()).await;
        let text = text_of(&result.content);
        assert_eq!(result.is_error, text.starts_with("Error: "), "{text}");
        result.deliveries.deliver_all();
        text
    }

    pub(crate) async fn foreground(&self) -> String {
        self.call("subagent", args()).await
    }

    /// Starts a background child; its task's id.
    pub(crate) async fn background(&self) -> TaskId {
        let text = self.call("subagent", background()).await;
        let id = text.strip_prefix("started background subagent task ");
        assert!(id.is_some(), "{text}");
        TaskId::from(id.unwrap())
    }

    /// What a model reads of a task that has ended.
    pub(crate) async fn ended(&self, id: &TaskId) -> String {
        let (owner, token) = (Some(self.parent.agent()), CancellationToken::new());
        let waited = self.tasks.wait(id, owner, 20_000.0, &token).await.unwrap();
        let read = self.tasks.read(id, owner, 64_000).unwrap();
        read.claim.deliver();
        waited.claim.deliver();
        format!("{}|{}", read.text, read.snapshot.status_line())
    }

    /// The status lines of all tasks that end from now on.
    pub(crate) fn ends(&self) -> Arc<Mutex<Vec<String>>> {
        let ends: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&ends);
        let listen = move |done: TaskDone| -> BoxFuture<_> {
            seen.lock().unwrap().push(done.snapshot.status_line());
            Box::pin(async { Ok(()) })
        };
        self.tasks.on_done(&self.scope, Serves::Everyone, listen).unwrap();
        ends
    }

    pub(crate) fn kill(&self, id: &TaskId, reason: Option<&str>) {
        let killed = self.tasks.kill(id, Some(self.parent.agent()), reason).unwrap();
        killed.claim.deliver();
    }
}

pub(crate) fn args() -> Value {
    json!({ "description": "Count files", "prompt": "Count the files." })
}

pub(crate) fn background() -> Value {
    json!({ "description": "Count files", "prompt": "Count the files.", "run_in_background": true })
}

fn agent(agents: &AgentRegistry, scope: &Scope, id: &str) -> AgentHandle {
    agents
        .create(AgentSpec {
            id: SessionId::new(id),
            cwd: None,
            within: scope.clone(),
        })
        .unwrap()
}
