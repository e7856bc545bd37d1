//! Three tools with which a model controls its background tasks, the notice that tells it of an end, and the
//! guidance for its system prompt.
//!
//! [`install`] joins a [`TaskRegistry`](dsh_tasks::TaskRegistry) with a [`ToolRegistry`](dsh_tools::ToolRegistry) and
//! a [`PromptRegistry`](dsh_system_prompt::PromptRegistry). What the tasks *are* it never learns: whoever can say
//! when its work has ended and how to cancel it is a producer.
//!
//! | tool | does |
//! |---|---|
//! | `task_output` | reads a task, waiting for its end first if asked to |
//! | `task_list` | lists the caller's tasks |
//! | `task_kill` | asks a task to end |
//!
//! A deployment that says "job" for "task" says so to its task registry
//! ([`Vocabulary`](dsh_tasks::Vocabulary)); names, parameters and texts follow.
//!
//! # Contract
//!
//! - **An end is told once.** A call that is about to tell it claims it, and the claim travels with the result as a
//!   [`Delivery`](dsh_tools::Delivery). Delivered, the notice is spent, also one that is queued already; dropped, by
//!   an abort or by a client that went away, the notice comes, and the output that the result had is read again.
//! - **A notice goes to the exact owner**, into its inbox, and to nobody if nobody owns the task. Whoever drives the
//!   agent takes it from there; a spent one is taken back.
//! - **Nothing blocks.** All three tools are parallel; a waiting `task_output` holds back no other call. A wait that
//!   times out is a success, and the task lives on.
//! - **A producer's limit holds** for the complete reply, error or notice. A read keeps its status line, a notice the
//!   id and what to do, an acknowledgement the id.
//! - **The tools can be replaced while tasks run**: only the fence, the schemas and the notices go with
//!   [`Handle::uninstall`].
//!
//! # Example: an existing harness with work of its own
//!
//! The harness brings its executor (here a plain thread) and its own way to call tools; it takes the registry and
//! these tools, and no other part of the workspace runs anything.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use std::sync::Arc;
//!
//! use dsh_agent::{AgentRegistry, AgentSpec};
//! use dsh_scope::Scope;
//! use dsh_session::SessionId;
//! use dsh_system_prompt::PromptRegistry;
//! use dsh_tasks::{Outcome, StartSpec, TaskRegistry, TasksConfig, Work};
//! use dsh_tool_tasks::{Deps, ToolTasksConfig, install};
//! use dsh_tools::{ToolContext, ToolRegistry};
//! use serde_json::json;
//!
//! /// The harness' own executor: counts until it is told to stop.
//! fn count(limit: u32) -> Work {
//!     let stop = Arc::new(AtomicBool::new(false));
//!     let stopped = Arc::clone(&stop);
//!     let (ended, done) = tokio::sync::oneshot::channel();
//!     std::thread::spawn(move || {
//!         let counted = (0..limit).take_while(|_| !stopped.load(Ordering::Relaxed)).count();
//!         let outcome = if counted as u32 == limit { Outcome::completed() } else { Outcome::killed() };
//!         ended.send(outcome.output(format!("counted to {counted}")))
//!     });
//!     Work::new(
//!         async { done.await.unwrap_or_else(|_| Outcome::failed().detail("the thread panicked")) },
//!         move |_| {
//!             stop.store(true, Ordering::Relaxed);
//!             Ok(())
//!         },
//!     )
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scope = Scope::root("my harness");
//! let agents = AgentRegistry::new();
//! let agent = agents.create(AgentSpec { id: SessionId::new("s-1"), cwd: None, within: scope.clone() })?;
//! let tasks = TaskRegistry::install(
//!     &scope,
//!     dsh_tasks::Deps { agents: Some(agents.clone()) },
//!     TasksConfig::default(),
//! )?;
//! let tools = ToolRegistry::new();
//! let deps = Deps { tools: tools.clone(), prompts: PromptRegistry::new(), tasks: tasks.clone() };
//! install(&scope, deps, ToolTasksConfig::default())?;
//!
//! // A tool of the harness starts work in the background ...
//! let spec = StartSpec::new("count", "count to a million", || Ok(count(1_000_000)));
//! let id = tasks.start(spec.owned_by(agent.agent().clone()))?;
//!
//! // ... and the model collects it.
//! let ctx = ToolContext {
//!     caller: Some(agent.agent().clone()),
//!     token: Default::default(),
//!     call_id: dsh_llm::CallId::new("call-1"),
//! };
//! let result = tools.execute("task_output", json!({ "task_id": id.as_str(), "wait": true }), ctx).await;
//! assert_eq!(result.single_text(), Some("counted to 1000000\n[status: completed]"));
//! result.deliveries.deliver_all(); // the model has it: no notice will come
//! assert_eq!(agent.agent().inbox().pending(), 0);
//!
//! scope.close().await?;
//! # Ok(())
//! # }
//! ```

mod service;

mod config;
mod error;

mod control;
mod kill;
mod list;
mod output;

mod bounds;
mod value;

mod guidance;
mod notice;
mod surface;

pub use config::{ConfigError, ToolTasksConfig};
pub use error::InstallError;
pub use notice::PLUGIN as NOTICE_PLUGIN;
pub use service::{Deps, Handle, install};
pub use surface::model_surface;
