//! The tool that delegates work to a subagent.
//!
//! One installed tool is bound to one provider of a [`SubagentRegistry`](dsh_subagent::SubagentRegistry) by its name; a
//! deployment installs it as often as it has ways to delegate, each time under a name of its own. The model never says
//! who runs a child.
//!
//! # Contract
//!
//! - **It is there exactly while its provider is**, whoever comes first, and is worded for the provider that is there: one
//!   whose children know the conversation, or one whose children know nothing. [`install`] offers it to everybody,
//!   [`install_for`] to one agent.
//! - **Foreground.** The call waits for the child, and for its release, before it says anything; the token of the call
//!   is that of the child. Text of a child that failed is told after the failure, and what its provider says of it
//!   stands before that. A call that is dropped releases its child all the same.
//! - **Background.** The child is a task of the caller, of the kind `subagent`: it is started inside the registry's
//!   reservation, so a refused task has started nothing, and the id comes without waiting for the start. The task ends
//!   when the child was released. It is `killed` when the child was, `failed` when anything went wrong, a cleanup after a
//!   kill included. A start whose answer is dropped is ended: nobody knows its id.
//! - **Calls run side by side.** Of an answer a model gets at most 64,000 bytes, wherever it ran.
//! - **What is left out of the settings is not asked of the provider**, except for the limit of depth, which is 3.
//!   A provider that cannot hold it is refused until the settings say `max_depth = "provider-managed"`.
//!
//! The order of refusals: arguments, no calling agent, `run_in_background` switched off, no task registry, the
//! registry's own, the seam's own.
//!
//! The reason of a kill goes into the task and the log: a child is ended by a token, which carries none.
//!
//! # Example
//!
//! ```
//! use dsh_scope::Scope;
//! use dsh_subagent::SubagentRegistry;
//! use dsh_tasks::TaskRegistry;
//! use dsh_tool_subagent::{Deps, Handle, InstallError, ToolSubagentConfig, install};
//! use dsh_tools::ToolRegistry;
//!
//! /// Lets models delegate to the provider `codex`, as soon as there is one.
//! fn offer(
//!     scope: &Scope,
//!     tools: &ToolRegistry,
//!     subagents: &SubagentRegistry,
//!     tasks: &TaskRegistry,
//! ) -> Result<Handle, InstallError> {
//!     let deps = Deps { tools: tools.clone(), subagents: subagents.clone(), tasks: Some(tasks.clone()) };
//!     let config = ToolSubagentConfig {
//!         tool_name: "subagent_codex".to_owned(),
//!         ..ToolSubagentConfig::new("codex")
//!     };
//!     install(scope, deps, config)
//! }
//! ```

mod service;

mod config;
mod error;

mod args;
mod card;
mod tool;
mod wording;

mod background;
mod finished;
mod foreground;
mod mirror;

pub use config::{AgentOptions, BackgroundMode, ConfigError, MaxDepth, ToolFilterConfig, ToolSubagentConfig};
pub use error::InstallError;
pub use service::{Deps, Handle, install, install_for};
