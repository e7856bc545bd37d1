//! What a model sends as the arguments of a tool: it is refused with everything that is wrong, or exactly what it says is
//! asked for, and nothing else.
//!
//! Nothing is run: who would run it notes what it is asked for, and refuses.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_agent::{AgentHandle, AgentRegistry, AgentSpec};
use dsh_bash::{BashExecutor, BashProcess, BashRequest, BashSpec, ResolveError, StartError};
use dsh_llm::{CallId, ContentBlock, text_of};
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_subagent::{Capabilities, Run, StartFailure, StartRequest, SubagentProvider, SubagentRegistry};
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::{Outcome, StartSpec, TaskRegistry, TasksConfig, Work};
use dsh_tool_bash::{Background, ToolBashConfig};
use dsh_tool_subagent::ToolSubagentConfig;
use dsh_tool_tasks::ToolTasksConfig;
use dsh_tools::{ToolContext, ToolRegistry};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::input::Input;

const AGENT: &str = "fuzz";

thread_local! {
    // Kept until the process is over, like that of a harness.
    static HOST: &'static Host = Box::leak(Box::new(Host::new()));
}

/// The first byte chooses the tool, the rest is the text of its arguments.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let tool = TOOLS[usize::from(input.byte()) % TOOLS.len()];
    let text = String::from_utf8_lossy(input.rest()).into_owned();
    let args = if text.trim().is_empty() {
        Some(Map::new())
    } else {
        serde_json::from_str(&text)
            .ok()
            .and_then(|args: Value| args.as_object().cloned())
    };
    HOST.with(|host| {
        let said = host.call(tool.name, &text);
        let asked = host.asked();
        let valid = args.as_ref().is_some_and(|args| tool.accepts(args));
        assert_eq!(!valid, said.starts_with("Error: invalid arguments: "), "{said}");
        match (args.filter(|_| valid), tool.name) {
            (Some(args), "bash") => asked_for_command(&args, asked, &said),
            (Some(args), "subagent") => asked_for_child(&args, asked, &said),
            _ => assert!(asked.is_none(), "{asked:?}"),
        }
    });
}

/// A tool by what it takes.
struct Taken {
    name: &'static str,
    required: &'static [&'static str],
    texts: &'static [&'static str],
    numbers: &'static [&'static str],
    switches: &'static [&'static str],
}

const TOOLS: [&Taken; 5] = [
    &Taken {
        name: "bash",
        required: &["command", "description"],
        texts: &["command", "description", "workdir"],
        numbers: &["timeoutMs"],
        switches: &["run_in_background"],
    },
    &Taken {
        name: "task_output",
        required: &["task_id"],
        texts: &["task_id"],
        numbers: &["timeout_ms"],
        switches: &["wait"],
    },
    &Taken {
        name: "task_list",
        required: &[],
        texts: &[],
        numbers: &[],
        switches: &[],
    },
    &Taken {
        name: "task_kill",
        required: &["task_id"],
        texts: &["task_id", "reason"],
        numbers: &[],
        switches: &[],
    },
    &Taken {
        name: "subagent",
        required: &["description", "prompt"],
        texts: &["description", "prompt"],
        numbers: &[],
        switches: &["run_in_background"],
    },
];

impl Taken {
    fn accepts(&self, args: &Map<String, Value>) -> bool {
        let all = |names: &[&str], fits: fn(&Value) -> bool| {
            names.iter().all(|name| args.get(*name).is_none_or(fits))
        };
        self.required.iter().all(|name| args.contains_key(*name))
            && all(self.texts, Value::is_string)
            && all(self.numbers, Value::is_number)
            && all(self.switches, Value::is_boolean)
    }
}

fn text(args: &Map<String, Value>, name: &str) -> Option<String> {
    args.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn is_blank(args: &Map<String, Value>, name: &str) -> bool {
    text(args, name).is_none_or(|text| text.trim().is_empty())
}

fn asked_for_command(args: &Map<String, Value>, asked: Option<Asked>, said: &str) {
    let timeout_ms = args.get("timeoutMs").and_then(Value::as_f64);
    let sensible = timeout_ms.is_none_or(|ms| ms > 0.0);
    let asks = !is_blank(args, "command") && !is_blank(args, "description") && sensible;
    let expected = asks.then(|| {
        let facts = [("DSH_SESSION_ID", AGENT), ("DSH_SHELL", "1")];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Asked::Command(BashRequest {
            workdir: text(args, "workdir").map(PathBuf::from),
            timeout_ms,
            dsh_env: BTreeMap::from(facts),
            ..BashRequest::new(text(args, "command").unwrap())
        })
    });
    assert_eq!(asked, expected, "{said}");
}

fn asked_for_child(args: &Map<String, Value>, asked: Option<Asked>, said: &str) {
    let foreground = args
        .get("run_in_background")
        .is_none_or(|background| background == false);
    let asks = foreground && !is_blank(args, "prompt") && !is_blank(args, "description");
    let expected = asks.then(|| Asked::Child {
        prompt: vec![ContentBlock::text(text(args, "prompt").unwrap())],
        label: text(args, "description"),
    });
    assert_eq!(asked, expected, "{said}");
}

/// What was asked for.
#[derive(Debug, PartialEq)]
enum Asked {
    Command(BashRequest),
    Child {
        prompt: Vec<ContentBlock>,
        label: Option<String>,
    },
}

/// Notes what it is asked for, and refuses.
#[derive(Clone, Default)]
struct Clerk {
    asked: Arc<Mutex<Option<Asked>>>,
}

impl Clerk {
    fn note(&self, asked: Asked) {
        assert!(self.asked.lock().unwrap().replace(asked).is_none(), "asked twice");
    }
}

#[async_trait]
impl BashExecutor for Clerk {
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        self.note(Asked::Command(request));
        Err(ResolveError::EmptyWorkdir)
    }

    fn start(&self, _spec: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError> {
        unreachable!("nothing was resolved")
    }
}

#[async_trait]
impl SubagentProvider for Clerk {
    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        self.note(Asked::Child {
            prompt: request.prompt,
            label: request.label,
        });
        Err(StartFailure::new("nobody is there"))
    }
}

/// The tools, and one agent that calls them.
struct Host {
    runtime: Runtime,
    agent: AgentHandle,
    tools: ToolRegistry,
    clerk: Clerk,
}

impl Host {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let entered = runtime.enter();
        let (scope, agents) = (Scope::root("fuzz"), AgentRegistry::new());
        let (tools, prompts, clerk) = (ToolRegistry::new(), PromptRegistry::new(), Clerk::default());
        let deps = dsh_tasks::Deps {
            agents: Some(agents.clone()),
        };
        let tasks = TaskRegistry::install(&scope, deps, TasksConfig::default()).unwrap();
        let deps = dsh_tool_tasks::Deps {
            tools: tools.clone(),
            prompts: prompts.clone(),
            tasks: tasks.clone(),
        };
        dsh_tool_tasks::install(&scope, deps, ToolTasksConfig::default()).unwrap();
        let deps = dsh_tool_bash::Deps {
            tools: tools.clone(),
            prompts,
            bash: Arc::new(clerk.clone()),
            background: Background::Tasks(tasks.clone()),
        };
        dsh_tool_bash::install(&scope, deps, ToolBashConfig::default()).unwrap();
        let subagents = SubagentRegistry::new();
        subagents
            .register(&scope, "clerk", Arc::new(clerk.clone()))
            .unwrap();
        let deps = dsh_tool_subagent::Deps {
            tools: tools.clone(),
            subagents,
            tasks: None,
        };
        dsh_tool_subagent::install(&scope, deps, ToolSubagentConfig::new("clerk")).unwrap();
        let agent = agents
            .create(AgentSpec {
                id: SessionId::new(AGENT),
                cwd: None,
                within: scope.clone(),
            })
            .unwrap();
        // One that has ended, so that there is an id to find.
        let ended = || Ok(Work::new(async { Outcome::completed() }, |_| Ok(())));
        let start = StartSpec::new("test", "has ended", ended).owned_by(Arc::clone(agent.agent()));
        tasks.start(start).unwrap();
        drop(entered);
        Self {
            runtime,
            agent,
            tools,
            clerk,
        }
    }

    /// Calls a tool as a model does, and shows call and result as a front door does.
    fn call(&self, name: &str, args: &str) -> String {
        let caller = self.agent.agent();
        let ctx = ToolContext {
            caller: Some(Arc::clone(caller)),
            token: CancellationToken::new(),
            call_id: CallId::new("call-1"),
        };
        let sent = Value::String(args.to_owned());
        let result = self.runtime.block_on(self.tools.execute(name, sent.clone(), ctx));
        let text = text_of(&result.content);
        assert_eq!(result.is_error, text.starts_with("Error: "), "{text}");
        let code = result.error.map(|error| error.code);
        assert_ne!(code, Some("TOOL_PANICKED"), "{text}");
        let tool = self.tools.get(name).expect("it is installed");
        for args in [sent, serde_json::from_str(args).unwrap_or_default()] {
            tool.present_call(&args);
            tool.present_result(&args, &result);
            tool.concurrency(&args);
            tool.timeout(&args);
            tool.result_limit(&args, Some(caller));
        }
        result.deliveries.deliver_all();
        text
    }

    fn asked(&self) -> Option<Asked> {
        self.clerk.asked.lock().unwrap().take()
    }
}
