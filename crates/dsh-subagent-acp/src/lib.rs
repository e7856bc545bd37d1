//! Any agent of the Agent Client Protocol as a subagent.
//!
//! [`install`] offers an agent to a [`SubagentRegistry`](dsh_subagent::SubagentRegistry) under a name. Each run is one process
//! that is spoken to over its standard streams, one session, and one turn; its answer is what the agent says in that turn. A
//! deployment may install as many agents as it has names for.
//!
//! # Contract
//!
//! - **The program is the deployment's choice**: an absolute path, or a name on the `PATH` that the agent gets.
//! - **Where** it works is where the agent works that delegates, unless a directory is configured.
//! - **Nobody is asked.** What the agent wants to be allowed is answered at once, as [`Permission`] says. It is offered neither
//!   files nor terminals.
//! - **A success is a turn that ended**, never an exit code. How the process ends after that is no matter.
//! - **A failure is told in fixed words**: the stage, the category, the exit. Nothing that the agent wrote is in it; that stands
//!   in the source of an error and in the log, at level debug.
//! - **Cancelled is aborted at once**; the agent hears `session/cancel`.
//! - **Disposed is gone.** The agent's input ends, and it has a while to end by itself; then it and everything that it started
//!   is ended, as far as the launcher can prove it.
//! - **Its answer is all that it says in the turn**, as it says it: the protocol marks no part as the final one. What it says
//!   before it calls a tool is in it, and nothing is put between that and what it says after. Thoughts, plans and calls are
//!   not in it. An agent whose steps are not to be read has to keep them to itself.
//! - **What it says is bounded**: an answer has at most 16 MiB. No time limit, no second try.
//!
//! # Example
//!
//! ```no_run
//! use dsh_agent::{AgentRegistry, AgentSpec};
//! use dsh_scope::Scope;
//! use dsh_session::SessionId;
//! use dsh_subagent::{StartRequest, SubagentRegistry};
//! use dsh_subagent_acp::{AcpConfig, Deps, Permission, install};
//! use dsh_subprocess::Launcher;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scope = Scope::root("my harness");
//! let subagents = SubagentRegistry::new();
//! let deps = Deps {
//!     subagents: subagents.clone(),
//!     launcher: Launcher::groups(),
//!     hurry: CancellationToken::new(),
//!     ambient: vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/srv/agents".into())],
//! };
//! let config = AcpConfig {
//!     args: vec!["--experimental-acp".into()],
//!     permission: Permission::Allow,
//!     ..AcpConfig::new("gemini")
//! };
//! install(&scope, deps, config)?;
//!
//! let agents = AgentRegistry::new();
//! let parent = agents.create(AgentSpec {
//!     id: SessionId::new("session-1"),
//!     cwd: Some("/srv/project".into()),
//!     within: scope.clone(),
//! })?;
//! let token = CancellationToken::new();
//! let request = StartRequest::new("Why does the build fail?", parent.agent().clone(), token);
//! let run = subagents.start("acp", request).await?;
//! let result = run.result().await?;
//! println!("{}: {}", result.stop, result.text());
//! run.dispose().await?;
//!
//! scope.close().await?;
//! # Ok(())
//! # }
//! ```

mod service;

mod config;

mod provider;

mod conversation;
mod turn;
mod wire;

mod failure;

pub use config::{AcpConfig, Permission};
pub use dsh_subagent_process::{ConfigError, Deps, InstallError, Variable};
pub use service::install;

/// Stands before every error of this crate that a model may read, and before what is logged.
const NAME: &str = "subagent-acp";
