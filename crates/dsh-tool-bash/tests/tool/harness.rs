//! Everything the tool joins, on one scope, and one agent that calls it.

use std::path::PathBuf;
use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_bash::BashExecutor;
use dsh_bash_local::{LocalBash, LocalBashConfig};
use dsh_llm::{CallId, text_of};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::{Serves, TaskId, TaskRegistry, TaskSnapshot, TasksConfig};
use dsh_testkit::eventually;
use dsh_tool_bash::{Background, Deps, Handle, ToolBashConfig, install};
use dsh_tools::{ToolContext, ToolRegistry, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) struct Harness {
    pub(crate) scope: Scope,
    pub(crate) agents: AgentRegistry,
    pub(crate) tools: ToolRegistry,
    pub(crate) prompts: PromptRegistry,
    pub(crate) tasks: TaskRegistry,
    pub(crate) handle: Handle,
    pub(crate) owner: AgentHandle,
    pub(crate) dir: tempfile::TempDir,
}

/// What differs from test to test.
pub(crate) struct Setup {
    pub(crate) tool: ToolBashConfig,
    pub(crate) bash: LocalBashConfig,
    pub(crate) tasks: TasksConfig,
    pub(crate) surface: bool,
    pub(crate) registry: bool,
    /// The whole ambient environment, if not the test's own.
    pub(crate) ambient: Option<(&'static str, &'static str)>,
    /// Another executor than that of this machine.
    pub(crate) executor: Option<Arc<dyn BashExecutor>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            tool: ToolBashConfig::default(),
            bash: LocalBashConfig {
                grace_ms: 300.0,
                ..LocalBashConfig::default()
            },
            tasks: TasksConfig::default(),
            surface: true,
            registry: true,
            ambient: None,
            executor: None,
        }
    }
}

impl Setup {
    pub(crate) fn harness(self) -> Harness {
        let scope = Scope::root("harness");
        let agents = AgentRegistry::new();
        let bash: Arc<dyn BashExecutor> = match (self.executor, self.ambient) {
            (Some(executor), _) => executor,
            (None, None) => Arc::new(LocalBash::install(&scope, self.bash).unwrap()),
            (None, Some((name, value))) => {
                let ambient = [(name.into(), value.into())];
                Arc::new(LocalBash::with_ambient(&scope, self.bash, ambient).unwrap())
            }
        };
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let tasks = TaskRegistry::install(&scope, deps, self.tasks).unwrap();
        if self.surface {
            tasks.attach_surface(&scope, "test", Serves::Everyone).unwrap();
        }
        let (tools, prompts) = (ToolRegistry::new(), PromptRegistry::new());
        let deps = Deps {
            tools: tools.clone(),
            prompts: prompts.clone(),
            bash,
            background: if self.registry {
                Background::Tasks(tasks.clone())
            } else {
                Background::NoRegistry
            },
        };
        let handle = install(&scope, deps, self.tool).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let owner = agent(&agents, &scope, "session-1", dir.path().into());
        Harness {
            scope,
            agents,
            tools,
            prompts,
            tasks,
            handle,
            owner,
            dir,
        }
    }
}

pub(crate) fn agent(agents: &AgentRegistry, scope: &Scope, id: &str, cwd: PathBuf) -> AgentHandle {
    agents
        .create(AgentSpec {
            id: SessionId::new(id),
            cwd: Some(cwd),
            within: scope.clone(),
        })
        .unwrap()
}

impl Harness {
    pub(crate) fn new() -> Self {
        Setup::default().harness()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Calls the tool with these arguments for the owner.
    pub(crate) async fn call(&self, args: Value) -> ToolResult {
        self.call_for(Some(self.owner.agent()), args, CancellationToken::new())
            .await
    }

    pub(crate) async fn call_for(
        &self,
        caller: Option<&Arc<Agent>>,
        args: Value,
        token: CancellationToken,
    ) -> ToolResult {
        let ctx = ToolContext {
            caller: caller.cloned(),
            token,
            call_id: CallId::new("call-1"),
        };
        self.tools.execute("bash", args, ctx).await
    }

    /// The result text of a foreground command.
    pub(crate) async fn foreground(&self, command: &str) -> String {
        let result = self
            .call(json!({ "command": command, "description": "a test" }))
            .await;
        assert!(!result.is_error, "{result:?}");
        let text = result.single_text().unwrap().to_owned();
        result.deliveries.deliver_all();
        text
    }

    /// Starts a background command; its task's id.
    pub(crate) async fn background(&self, command: &str) -> TaskId {
        let args = json!({ "command": command, "description": "a test", "run_in_background": true });
        let result = self.call(args).await;
        let text = result.single_text().unwrap();
        let id = TaskId::from(text.strip_prefix("started background task ").unwrap());
        result.deliveries.deliver_all();
        id
    }

    pub(crate) fn task(&self, id: &TaskId) -> TaskSnapshot {
        self.tasks.get(id, Some(self.owner.agent())).unwrap()
    }

    /// Reads all new output of a task, as the model gets it.
    pub(crate) fn read(&self, id: &TaskId) -> String {
        let read = self.tasks.read(id, Some(self.owner.agent()), 64_000).unwrap();
        read.claim.deliver();
        read.text
    }

    pub(crate) fn kill(&self, id: &TaskId) {
        self.tasks
            .kill(id, Some(self.owner.agent()), None)
            .unwrap()
            .claim
            .deliver();
    }

    /// What the owner is told now, which it has then been told.
    pub(crate) fn news(&self) -> Vec<String> {
        let lease = self.owner.agent().inbox().lease();
        let news = lease
            .messages()
            .iter()
            .map(|message| text_of(&message.content))
            .collect();
        lease.commit();
        news
    }

    /// The status line of a task once it has ended.
    pub(crate) async fn ended(&self, id: &TaskId) -> String {
        let token = CancellationToken::new();
        let waited = self
            .tasks
            .wait(id, Some(self.owner.agent()), 20_000.0, &token)
            .await
            .unwrap();
        waited.claim.deliver();
        waited.snapshot.status_line()
    }

    /// The status line of a task once it reads so.
    pub(crate) async fn reads(&self, id: &TaskId, line: &str) {
        eventually(line, || self.task(id).status_line() == line).await;
    }

    pub(crate) async fn pid(&self, name: &str) -> u32 {
        let file = self.file(name);
        let mut pid = None;
        eventually("pid file", || {
            pid = dsh_testkit::process::read_pid(&file);
            pid.is_some()
        })
        .await;
        pid.unwrap()
    }
}
