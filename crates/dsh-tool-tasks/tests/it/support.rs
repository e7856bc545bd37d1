//! A harness without a driver: registry, tools and prompts on one scope, and tasks that the test settles by hand.

use std::sync::{Arc, Mutex};

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_llm::{CallId, text_of};
use dsh_output::{OutputConfig, OutputLog, OutputSource, Rendering, Stream};
use dsh_scope::Scope;
use dsh_session::{Message, SessionId};
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::{
    BoxError, CancelRequest, Outcome, Serves, StartSpec, TaskDone, TaskId, TaskRegistry, TaskSnapshot,
    TasksConfig, Vocabulary, Work,
};
use dsh_testkit::eventually;
use dsh_tool_tasks::{Handle, ToolTasksConfig, install};
use dsh_tools::{ToolContext, ToolRegistry, ToolResult};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) struct Harness {
    pub(crate) scope: Scope,
    pub(crate) agents: AgentRegistry,
    pub(crate) tools: ToolRegistry,
    pub(crate) prompts: PromptRegistry,
    pub(crate) tasks: TaskRegistry,
    pub(crate) handle: Handle,
    /// Every end that was announced, seen after the notice surface saw it.
    done: Arc<Mutex<Vec<TaskDone>>>,
}

impl Harness {
    pub(crate) fn new() -> Harness {
        Harness::with(Vocabulary::Task, ToolTasksConfig::default())
    }

    pub(crate) fn with(vocabulary: Vocabulary, config: ToolTasksConfig) -> Harness {
        let scope = Scope::root("harness");
        let agents = AgentRegistry::new();
        let tasks_config = TasksConfig {
            vocabulary,
            ..TasksConfig::default()
        };
        let tasks = TaskRegistry::install(
            &scope,
            dsh_tasks::Deps {
                agents: Some(agents.clone()),
            },
            tasks_config,
        )
        .expect("the registry is installed");
        let (tools, prompts) = (ToolRegistry::new(), PromptRegistry::new());
        let deps = dsh_tool_tasks::Deps {
            tools: tools.clone(),
            prompts: prompts.clone(),
            tasks: tasks.clone(),
        };
        let handle = install(&scope, deps, config).expect("the tools are installed");
        let done = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&done);
        tasks
            .on_done(&scope, Serves::Everyone, move |done| {
                seen.lock().expect("unpoisoned").push(done);
                Box::pin(async { Ok(()) })
            })
            .expect("listening");
        Harness {
            scope,
            agents,
            tools,
            prompts,
            tasks,
            handle,
            done,
        }
    }

    pub(crate) fn deps(&self) -> dsh_tool_tasks::Deps {
        dsh_tool_tasks::Deps {
            tools: self.tools.clone(),
            prompts: self.prompts.clone(),
            tasks: self.tasks.clone(),
        }
    }

    pub(crate) fn agent(&self, id: &str) -> AgentHandle {
        self.agents
            .create(AgentSpec {
                id: SessionId::new(id),
                cwd: None,
                within: self.scope.clone(),
            })
            .expect("the agent is created")
    }

    pub(crate) async fn execute(&self, tool: &str, args: Value, caller: Option<&Arc<Agent>>) -> ToolResult {
        self.execute_with(tool, args, caller, CancellationToken::new())
            .await
    }

    pub(crate) async fn execute_with(
        &self,
        tool: &str,
        args: Value,
        caller: Option<&Arc<Agent>>,
        token: CancellationToken,
    ) -> ToolResult {
        let ctx = ToolContext {
            caller: caller.cloned(),
            token,
            call_id: CallId::new("call-1"),
        };
        self.tools.execute(tool, args, ctx).await
    }

    /// A call whose result reaches the model.
    pub(crate) async fn call(&self, tool: &str, args: Value, caller: Option<&Arc<Agent>>) -> String {
        let result = self.execute(tool, args, caller).await;
        let text = text_of(&result.content);
        result.deliveries.deliver_all();
        text
    }

    pub(crate) async fn read(&self, id: &TaskId, caller: Option<&Arc<Agent>>) -> String {
        self.call("task_output", json!({ "task_id": id.as_str() }), caller)
            .await
    }

    /// Waits until so many ends have been announced; the notice surface has acted on them then.
    pub(crate) async fn announced(&self, count: usize) -> Vec<TaskDone> {
        eventually("the ends to be announced", || {
            self.done.lock().expect("unpoisoned").len() >= count
        })
        .await;
        let done = self.done.lock().expect("unpoisoned").clone();
        assert_eq!(done.len(), count, "announced more often than expected");
        done
    }

    pub(crate) async fn terminal(&self, id: &TaskId, caller: Option<&Arc<Agent>>) -> TaskSnapshot {
        let snapshot = || self.tasks.get(id, caller).expect("the task is known");
        eventually("the task to end", || snapshot().status.is_terminal()).await;
        snapshot()
    }
}

/// Everything an agent has been told since the last time.
pub(crate) fn told(agent: &Agent) -> Vec<Message> {
    let lease = agent.inbox().lease();
    let messages = lease.messages().to_vec();
    lease.commit();
    messages
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| text_of(&message.content)).collect()
}

/// A task that ends when the test says so.
pub(crate) struct HandTask {
    pub(crate) id: TaskId,
    pub(crate) log: OutputLog,
    pub(crate) cancels: Arc<Mutex<Vec<CancelRequest>>>,
    settle: Mutex<Option<oneshot::Sender<Outcome>>>,
}

/// How a [`HandTask`] is made.
pub(crate) struct Spec<'a> {
    pub(crate) kind: &'a str,
    pub(crate) label: &'a str,
    pub(crate) owner: Option<&'a Arc<Agent>>,
    pub(crate) limit: Option<u64>,
    pub(crate) source: Source,
    pub(crate) cancel: Cancel,
}

pub(crate) enum Source {
    Stream,
    Final,
    Broken(String),
}

#[derive(Clone)]
pub(crate) enum Cancel {
    Recorded,
    Fails(String),
}

impl Default for Spec<'_> {
    fn default() -> Self {
        Spec {
            kind: "bash",
            label: "pnpm test",
            owner: None,
            limit: None,
            source: Source::Stream,
            cancel: Cancel::Recorded,
        }
    }
}

impl<'a> Spec<'a> {
    pub(crate) fn owned_by(owner: &'a Arc<Agent>) -> Self {
        Spec {
            owner: Some(owner),
            ..Spec::default()
        }
    }

    pub(crate) fn start(self, harness: &Harness) -> HandTask {
        let log = OutputLog::new(OutputConfig::default());
        let cancels = Arc::new(Mutex::new(Vec::new()));
        let (settle, settled) = oneshot::channel();
        let recorded = Arc::clone(&cancels);
        let cancel = self.cancel;
        let mut work = Work::new(
            async move {
                settled
                    .await
                    .unwrap_or_else(|_| Outcome::killed().detail("signal: SIGTERM"))
            },
            move |request: &CancelRequest| -> Result<(), BoxError> {
                recorded.lock().expect("unpoisoned").push(request.clone());
                match &cancel {
                    Cancel::Recorded => Ok(()),
                    Cancel::Fails(text) => Err(text.clone().into()),
                }
            },
        );
        work = match self.source {
            Source::Stream => work.output(Arc::new(log.reader(Rendering::Sections))),
            Source::Final => work,
            Source::Broken(text) => work.output(Arc::new(Broken(text))),
        };
        let mut spec = StartSpec::new(self.kind, self.label, move || Ok(work));
        if let Some(owner) = self.owner {
            spec = spec.owned_by(Arc::clone(owner));
        }
        if let Some(limit) = self.limit {
            spec = spec.output_limit_bytes(limit);
        }
        let id = harness.tasks.start(spec).expect("the task starts");
        HandTask {
            id,
            log,
            cancels,
            settle: Mutex::new(Some(settle)),
        }
    }
}

impl HandTask {
    pub(crate) fn print(&self, text: &str) {
        self.log.append(Stream::Stdout, text.as_bytes());
    }

    pub(crate) fn settle(&self, outcome: Outcome) {
        let settle = self
            .settle
            .lock()
            .expect("unpoisoned")
            .take()
            .expect("settled once");
        assert!(settle.send(outcome).is_ok(), "the registry awaits the end");
    }

    pub(crate) fn reasons(&self) -> Vec<Option<String>> {
        let cancels = self.cancels.lock().expect("unpoisoned");
        cancels.iter().map(|request| request.reason.clone()).collect()
    }
}

/// An output source whose every read panics.
struct Broken(String);

impl OutputSource for Broken {
    fn len(&self) -> u64 {
        1
    }

    fn read_range(&self, _from: u64, _to: u64, _max: usize) -> dsh_output::OutputRead {
        panic!("{}", self.0)
    }

    fn tail(&self, _max_lines: usize, _max_bytes: usize) -> String {
        String::new()
    }
}
