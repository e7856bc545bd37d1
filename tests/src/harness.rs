//! The assembled core in this process, with one agent that calls tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_agent::{Agent, AgentHandle, AgentSpec};
use dsh_agent_core::{AgentCore, Config, Parts};
use dsh_llm::CallId;
use dsh_session::SessionId;
use dsh_tools::{ToolContext, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::Reply;

/// The services and one agent.
pub struct Harness {
    /// The services.
    pub core: AgentCore,
    /// The agent's handle; its agent calls the tools.
    pub agent: AgentHandle,
    calls: AtomicU64,
}

impl Harness {
    /// Assembles the services and makes an agent that works in `cwd`.
    ///
    /// # Panics
    ///
    /// When that is refused.
    pub fn new(config: Config, cwd: PathBuf) -> Harness {
        Harness::with_parts(config, Parts::default(), cwd)
    }

    /// As [`new`](Self::new), with what a program brings along.
    ///
    /// # Panics
    ///
    /// When that is refused.
    pub fn with_parts(config: Config, parts: Parts, cwd: PathBuf) -> Harness {
        let core = AgentCore::assemble_with(config, parts).expect("the services fit together");
        let agent = agent(&core, "session-1", Some(cwd));
        Harness {
            core,
            agent,
            calls: AtomicU64::new(0),
        }
    }

    /// A further agent.
    ///
    /// # Panics
    ///
    /// When that is refused.
    pub fn another(&self, id: &str) -> AgentHandle {
        agent(&self.core, id, None)
    }

    /// Runs a tool for `caller`; nothing is delivered yet.
    pub async fn execute(
        &self,
        caller: Option<&Arc<Agent>>,
        tool: &str,
        arguments: Value,
        token: CancellationToken,
    ) -> ToolResult {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let context = ToolContext {
            caller: caller.cloned(),
            token,
            call_id: CallId::new(format!("call-{number}")),
        };
        self.core.context().tools.execute(tool, arguments, context).await
    }

    /// Runs a tool for the agent and delivers what it says, as a front door does once the model has it.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        let result = self
            .execute(
                Some(self.agent.agent()),
                tool,
                arguments,
                CancellationToken::new(),
            )
            .await;
        delivered(result)
    }

    /// Runs a command in the foreground.
    pub async fn bash(&self, command: &str) -> Reply {
        self.call(
            "bash",
            json!({"command": command, "description": "run a test command"}),
        )
        .await
    }

    /// Starts a command in the background.
    pub async fn background(&self, command: &str) -> Reply {
        let arguments =
            json!({"command": command, "description": "run a test command", "run_in_background": true});
        self.call("bash", arguments).await
    }

    /// Reads a task after waiting for its end.
    pub async fn wait(&self, id: &str) -> Reply {
        self.call(
            "task_output",
            json!({"task_id": id, "wait": true, "timeout_ms": 20000}),
        )
        .await
    }

    /// Disposes of the agent and shuts the services down.
    pub async fn close(self) {
        self.agent.dispose().await.expect("the agent goes");
        self.core.shutdown().await;
    }
}

/// What the model got.
pub fn delivered(result: ToolResult) -> Reply {
    let texts = result
        .content
        .iter()
        .filter_map(|block| block.as_text().map(str::to_owned))
        .collect();
    let reply = Reply {
        texts,
        is_error: result.is_error,
    };
    result.deliveries.deliver_all();
    reply
}

fn agent(core: &AgentCore, id: &str, cwd: Option<PathBuf>) -> AgentHandle {
    let services = core.context();
    let spec = AgentSpec {
        id: SessionId::new(id),
        cwd,
        within: services.scope.clone(),
    };
    services.agents.create(spec).expect("the id is free")
}
