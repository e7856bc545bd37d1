//! Codex as a subagent, over its app server.
//!
//! [`install`] offers Codex to a [`SubagentRegistry`](dsh_subagent::SubagentRegistry) under a name. Each run is one process of
//! the native `codex` program, one thread that Codex keeps nothing of, and one turn; its answer is the turn's final
//! message, below the parts of it that Codex has given before.
//! A deployment may install it as often as it has names for it, each with an environment and a permission mode of its own.
//!
//! # Contract
//!
//! - **The program is named**, by the configuration or by `DSH_CODEX`; the `PATH` is never searched. In this workspace,
//!   `cargo xtask products` fetches one.
//! - **Where** it works is where the agent works that delegates. Its login, its settings and its model are its own.
//! - **Nobody is asked.** What Codex wants to be allowed is declined at once, as [`PermissionMode`] says; a request that has no
//!   such answer ends the run.
//! - **A success is a completed turn with an answer**, never an exit code. How the process ends after that is no matter.
//! - **A failure is told in fixed words**: the stage, the category, the exit, and the latest permission that was not given.
//!   Nothing that Codex wrote is in it; that stands in the source of an error and in the log, at level debug.
//! - **Cancelled is aborted at once**; disposed is gone, with everything that Codex started, as far as the launcher can
//!   prove it.
//! - **An answer has at most 16 MiB**; a longer one is a failure. No time limit, no second try: a run ends by itself, or when
//!   it is cancelled.
//!
//! Driven by the tests: 0.171.0 and 0.147.0. A failure that a version has no word for, or a word that this crate does not
//! know, is told as `other` or `unknown`.
//!
//! # Example
//!
//! ```no_run
//! use dsh_agent::{AgentRegistry, AgentSpec};
//! use dsh_scope::Scope;
//! use dsh_session::SessionId;
//! use dsh_subagent::{StartRequest, SubagentRegistry};
//! use dsh_subagent_codex::{CodexConfig, Deps, PermissionMode, install};
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
//!     ambient: vec![("PATH".into(), "/usr/bin:/bin".into()), ("HOME".into(), "/srv".into())],
//! };
//! let config = CodexConfig {
//!     program: Some("/opt/codex/bin/codex".into()),
//!     permission_mode: PermissionMode::ApproveForMe,
//!     ..CodexConfig::default()
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
//! let run = subagents.start("codex", request).await?;
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
mod run;

mod link;
mod scanner;

mod frame;
mod handshake;
mod turn;

mod said;
mod unattended;

mod failure;
mod permission;

pub use config::{CodexConfig, PermissionMode};
pub use dsh_subagent_process::{ConfigError, Deps, InstallError, Variable};
pub use service::install;

/// Stands before every error of this crate that a model may read, and before what is logged.
const NAME: &str = "subagent-codex";
