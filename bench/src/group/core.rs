//! The assembled core in this process, with guards and one agent that calls tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dsh_agent::{Agent, AgentHandle, AgentSpec};
use dsh_agent_core::{AgentCore, Config, Parts};
use dsh_llm::CallId;
use dsh_session::SessionId;
use dsh_subprocess::{GuardConfig, Launcher};
use dsh_tools::ToolContext;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::processes::{descendants, has_become};
use crate::Failure;

/// The services, as the `dsh` binary has them, and one agent.
pub(crate) struct Core {
    pub(crate) services: AgentCore,
    pub(crate) agent: AgentHandle,
    calls: AtomicU64,
}

impl Core {
    pub(crate) fn new() -> Result<Core, Failure> {
        let mut config = Config::default();
        config.tasks.max_concurrent_tasks_per_owner = 1 << 20;
        let parts = Parts {
            launcher: Launcher::guarded(GuardConfig::own_program())?,
            ..Parts::default()
        };
        let services = AgentCore::assemble_with(config, parts)?;
        let agent = agent(&services, "owner")?;
        Ok(Core {
            services,
            agent,
            calls: AtomicU64::new(0),
        })
    }

    /// An agent that has done nothing yet.
    pub(crate) fn another(&self, id: &str) -> Result<AgentHandle, Failure> {
        agent(&self.services, id)
    }

    /// Calls a tool and delivers what it says, as a front door does.
    pub(crate) async fn call(
        &self,
        caller: &Arc<Agent>,
        tool: &str,
        arguments: Value,
    ) -> Result<String, Failure> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let context = ToolContext {
            caller: Some(Arc::clone(caller)),
            token: CancellationToken::new(),
            call_id: CallId::new(format!("call-{number}")),
        };
        let tools = &self.services.context().tools;
        let result = tools.execute(tool, arguments, context).await;
        let text = result.single_text().unwrap_or_default().to_owned();
        let is_error = result.is_error;
        result.deliveries.deliver_all();
        if is_error {
            return Err(format!("{tool}: {text}").into());
        }
        Ok(text)
    }

    /// Starts so many commands in the background that do nothing, and waits until each of them does.
    pub(crate) async fn start_silent(&self, caller: &Arc<Agent>, count: usize) -> Result<(), Failure> {
        let before = sleepers();
        for _ in 0..count {
            self.background(caller, "exec sleep 1000").await?;
        }
        while sleepers() < before + count {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(crate) async fn background(&self, caller: &Arc<Agent>, command: &str) -> Result<String, Failure> {
        let arguments = json!({
            "command": command,
            "description": "run a command to measure",
            "run_in_background": true,
        });
        self.call(caller, "bash", arguments).await
    }

    pub(crate) async fn shutdown(&self) {
        self.services.shutdown().await;
    }
}

fn agent(services: &AgentCore, id: &str) -> Result<AgentHandle, Failure> {
    let context = services.context();
    let spec = AgentSpec {
        id: SessionId::new(id),
        cwd: Some(PathBuf::from("/")),
        within: context.scope.clone(),
    };
    Ok(context.agents.create(spec)?)
}

/// The commands that do nothing already.
fn sleepers() -> usize {
    let all = descendants(std::process::id());
    all.iter().filter(|pid| has_become(**pid, "sleep")).count()
}
