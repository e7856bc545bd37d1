//! The bundle: typed configuration, service context, ordered assembly and shutdown.
//!
//! [`AgentCore::assemble`] checks a [`Config`], installs the services in dependency order and hands out a
//! [`ServiceContext`], a plain struct of handles; [`AgentCore::shutdown`] takes them down in reverse and returns when
//! nothing is left. A front door makes agents in that context and calls tools for them.
//!
//! ```
//! use dsh_agent::AgentSpec;
//! use dsh_agent_core::{AgentCore, Config};
//! use dsh_llm::CallId;
//! use dsh_session::SessionId;
//! use dsh_tools::ToolContext;
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut config = Config::default();
//! config.tasks.max_concurrent_tasks_per_owner = 3;
//! let core = AgentCore::assemble(config)?;
//! let services = core.context();
//!
//! let spec = AgentSpec { id: SessionId::new("s-1"), cwd: None, within: services.scope.clone() };
//! let handle = services.agents.create(spec)?;
//! let call = ToolContext {
//!     caller: Some(handle.agent().clone()),
//!     token: Default::default(),
//!     call_id: CallId::new("call-1"),
//! };
//! let args = json!({ "command": "echo hello", "description": "Say hello" });
//! let result = services.tools.execute("bash", args, call).await;
//! assert!(result.single_text().unwrap_or_default().contains("hello"));
//! result.deliveries.deliver_all();
//!
//! core.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Configuration
//!
//! TOML, one table per crate. Unknown keys are refused, and all faults are reported at once, each with its key:
//!
//! ```toml
//! vocabulary = "task"                     # or "job"
//!
//! [model]
//! provider = "deepseek"                   # or "openai", "compatible", "scripted"
//! name = "deepseek-chat"
//! max_tokens = 8000                       # without it, the provider's own limit
//!
//! [agent]
//! max_parallel_tool_calls = 10
//! persona = "You review code."
//! tool_order = ["bash", "<unlisted-tools>"]
//!
//! [approval]
//! ask = ["bash"]                          # without it, nobody is asked
//!
//! [tasks]
//! max_concurrent_tasks_per_owner = 10
//! retained_unowned = 100
//! dispose_timeout_ms = 30000.0
//! access = "own-and-descendants"          # or "own"
//!
//! [tool_tasks]
//! enabled = true
//! wait_timeout_ms = 30000.0
//! max_wait_timeout_ms = 600000.0
//! max_read_bytes = 64000
//! completion_delivery = "wakeup"          # or "quiet"
//! max_consecutive_wakes = 3
//!
//! [bash]
//! timeout_ms = 120000.0
//! allow_env = ["GITHUB_TOKEN"]
//!
//! [tool_bash]
//! enable_run_in_background = true
//! leftover = "adopt"                      # or "end", "leave"
//! stall_notice_ms = 60000                 # without it, silence is no news
//! ```
//!
//! [`Config::load`] finds the file, [`Config::schema`] describes it, [`Config::to_toml`] writes it.
//!
//! # The fence
//!
//! With `tool_tasks.enabled = false` the registry is there, but nobody could read or stop a task: the `bash` tool offers no
//! background, refuses what asks for it all the same, and ends what a command leaves running.

mod served;
mod service;

mod composition;

mod approval;
mod continuity;
mod lineage;
mod models;
mod prompt;

mod config;

mod error;

pub use composition::{
    Composition, CompositionError, CompositionFault, Preset, PresetError, Presets, Profile, ProfileError,
    RowStatus,
};
pub use config::{
    AgentTable, ApprovalTable, CompletionDelivery, Config, ModelOverrides, ModelTable, OverrideError,
    Provider, Source, TasksTable, ToolTasksTable,
};
pub use error::{AssembleError, ConfigError, Fault};
pub use models::{Models, ModelsError};
pub use served::Served;
pub use service::{AgentCore, Parts, ServiceContext};
