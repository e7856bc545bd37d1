//! The model-facing `bash` tool: foreground, background, and what is left of a tree.
//!
//! The tool joins two worlds that know nothing of each other: a [`BashExecutor`](dsh_bash::BashExecutor) that runs
//! commands, and a [`TaskRegistry`](dsh_tasks::TaskRegistry) that keeps background work.
//!
//! # Contract
//!
//! - **Foreground.** The result is the text that [`dsh_bash::run`] led to: output, then one line per finding, the exit
//!   last. A nonzero exit, a signal and a timeout are results; [`parse_exit`] reads the exit back. An exit that nobody saw
//!   (`[guard lost; tree seen empty]`) is a failed result with the same text. A cancelled call ends the whole tree first
//!   and is an error.
//!   The file that a long result names stays for the next 19 long ones, or for fewer if together they have more than
//!   256 MiB, or until the tool goes.
//! - **Background.** The process is started inside the registry's reservation: a refused start has started nothing. The
//!   task runs until the *tree* is gone, not until the shell exits; between the two it says
//!   `shell exited with code 0, 2 processes running`. `timeoutMs` is a deadline then. A
//!   start whose answer is dropped (the call was cancelled meanwhile) is ended: nobody knows its id.
//! - **What a foreground command leaves running** becomes a background task of the caller where somebody serves it
//!   (`[1 process still running; adopted as background task bash-3]`); the result has told its output up to that point,
//!   the task tells the rest. If the result is dropped, what was adopted is ended. Elsewhere it is ended at once. [`Leftover`] is the setting.
//! - **The end of a task** says what was seen: `exit code: 3`, `signal: SIGTERM`, `shell had exited with code 0` for a
//!   kill that came later. A process that never ran has failed.
//! - **A silence** of a task, if [`ToolBashConfig::stall_notice_ms`] is set, is told to its owner once, by a notice with the
//!   last line, and again only after output came in between; never once the end was asked for. What cannot print any
//!   more (it has closed its output) is not silent.
//! - **Requests** are built from named arguments. Whatever else a model sends, an environment for example, goes nowhere.
//!   Commands find `DSH_SHELL=1`, `DSH_SESSION_ID` when an agent calls, and `DSH_HOME` when it is configured.
//!
//! The order of refusals in a background call: arguments, `run_in_background` switched off or no registry, the call
//! cancelled, the request, its directory, the registry's own. A directory that does not answer is waited for as long as
//! a command in the foreground would be.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_bash::BashExecutor;
//! use dsh_scope::Scope;
//! use dsh_system_prompt::PromptRegistry;
//! use dsh_tool_bash::{Background, Deps, Handle, InstallError, ToolBashConfig, install};
//! use dsh_tools::ToolRegistry;
//!
//! /// Offers bash to a model, without background work.
//! fn offer(scope: &Scope, tools: &ToolRegistry, bash: Arc<dyn BashExecutor>) -> Result<Handle, InstallError> {
//!     let background = Background::NoRegistry;
//!     let deps = Deps { tools: tools.clone(), prompts: PromptRegistry::new(), bash, background };
//!     install(scope, deps, ToolBashConfig::default())
//! }
//! ```

mod args;
mod card;
mod config;
mod error;
mod foreground;
mod kept;
mod outcome;
mod prompt;
mod render;
mod service;
mod stall;
mod tool;
mod unheard;
mod work;

pub use config::{Leftover, OutputLayout, ToolBashConfig};
pub use error::InstallError;
pub use render::parse_exit;
pub use service::{Background, Deps, Handle, install};
