//! Claude Code as a subagent, over its control protocol.
//!
//! [`install`] offers one way to run Claude Code to a [`SubagentRegistry`](dsh_subagent::SubagentRegistry). Each run is one
//! process of the native program, which works in the directory of whoever delegates, gets one task of text and gives one
//! answer of text. Login, model and settings are the product's own.
//!
//! # What holds
//!
//! - **Published means up.** A run is published when Claude Code has answered the `initialize` request that stands before its
//!   task. What went wrong by then (no program, no directory, an exit) is a failed start, and nothing of the product is left.
//! - **Success is what the product called one**: a result that says `success`, no error, and something. No exit code makes a
//!   success; an exit other than 0 spoils one, because then the product did not come to its end.
//! - **One answer, of the whole stream.** A turn may end while Claude Code has background work of its own. Its input is closed
//!   at the first result, which is how it is told that nobody has more to say; then it is listened to until it exits. How long
//!   that takes is the product's: it waits for its agents (ten minutes at most, by its variable
//!   `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS`) and takes a further turn, with a further result, for what came to its end. Shell
//!   commands get five seconds from 2.1.220; 2.1.332 waits for each up to the limit of time that its model has set, or for ten
//!   minutes and more, and then tells its model that it was stopped. Whoever cannot wait cancels the run. The
//!   last result that says anything decides: a success is the answer, an error is the failure, and a success without words
//!   changes nothing. What still ran at the last result and did not come to its own end was ended with the run, and a line
//!   behind the answer says how many that were.
//! - **Nobody is asked.** Every permission is denied, every question declined, every dialog cancelled, in every
//!   [`PermissionMode`]; behind the first result, where nothing can be answered any more, Claude Code denies by itself. The
//!   latest such decision is told with a failure.
//! - **What is told is safe.** A diagnostic has fixed words and numbers; what the product said is for the log of this program,
//!   at level debug.
//! - **An answer has at most 16 MiB**; a longer one is a failure.
//! - **Cancelled is aborted, at once; disposed is gone.** The process and all it started, sessions of their own included, end
//!   with the run, as far as the [`Launcher`](dsh_subprocess::Launcher) goes.
//!
//! Driven by the tests: 2.1.332 and 2.1.220.
//!
//! The conversation is a pure core, from lines to what they ask for, in a thin shell that reads and writes.
//!
//! # Alone
//!
//! The program stands for Claude Code here; it is spoken to as that would be.
//!
//! ```
//! use dsh_agent::{AgentRegistry, AgentSpec};
//! use dsh_scope::Scope;
//! use dsh_session::SessionId;
//! use dsh_subagent::{StartRequest, SubagentRegistry};
//! use dsh_subagent_claude_code::{ClaudeCodeConfig, Deps, install};
//! use dsh_subprocess::Launcher;
//! use tokio_util::sync::CancellationToken;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::os::unix::fs::PermissionsExt;
//! # let directory = tempfile::tempdir()?;
//! # let program = directory.path().join("claude");
//! # std::fs::write(&program, "#!/bin/sh\n\
//! #     read -r initialize; read -r task\n\
//! #     echo '{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"initialize\"}}'\n\
//! #     echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"42\"}'\n")?;
//! # std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let scope = Scope::root("example");
//! let subagents = SubagentRegistry::new();
//! let deps = Deps {
//!     subagents: subagents.clone(),
//!     launcher: Launcher::groups(),
//!     hurry: CancellationToken::new(),
//!     ambient: vec![("PATH".into(), "/usr/bin:/bin".into())],
//! };
//! let config = ClaudeCodeConfig { program: Some(program), ..ClaudeCodeConfig::default() };
//! install(&scope, deps, config)?;
//!
//! let spec = AgentSpec {
//!     id: SessionId::new("session-1"),
//!     cwd: Some("/".into()),
//!     within: scope.clone(),
//! };
//! let parent = AgentRegistry::new().create(spec)?;
//! let task = StartRequest::new("six times seven?", parent.agent().clone(), CancellationToken::new());
//! let run = subagents.start("claude-code", task).await?;
//! assert_eq!(run.result().await?.text(), "42");
//! run.dispose().await?;
//! # parent.dispose().await?;
//! # scope.close().await?;
//! # Ok(())
//! # })
//! # }
//! ```

mod service;

mod config;

mod provider;

mod conversation;
mod protocol;

mod command;
mod control;
mod fact;
mod failure;

pub use config::{ClaudeCodeConfig, PermissionMode};
pub use dsh_subagent_process::{ConfigError, Deps, InstallError, Variable};
pub use service::install;

/// Stands before every error of this crate that a model may read, and before what is logged.
const NAME: &str = "subagent-claude-code";
