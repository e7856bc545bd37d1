//! The driver of agents: turns, steps, tool batches, retries.
//!
//! An [`AgentLoop`] makes [`LedAgent`]s: agents that work on their own. A message or a notice opens a turn; in each step of
//! it the model is asked, what it calls is run, and what came meanwhile is told; when it has nothing more to say and
//! nothing came, the turn is closed. All of it is in the session's log, and the model sees nothing that is not.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_agent::AgentRegistry;
//! use dsh_agent_loop::{AgentLoop, AgentPlan, Deps, LoopConfig, ModelChoice};
//! use dsh_llm::ModelRegistry;
//! use dsh_llm_scripted::ScriptedAdapter;
//! use dsh_scope::Scope;
//! use dsh_session::{EventData, Message, Session, SessionId, TurnEnd};
//! use dsh_system_prompt::PromptRegistry;
//! use dsh_tools::ToolRegistry;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = ScriptedAdapter::from_json("greeting", r#"{"turns": [{"expect": ["hello"], "text": "Hello to you."}]}"#)?;
//! let mut models = ModelRegistry::new();
//! models.register("scripted", Arc::new(script))?;
//! let deps = Deps { agents: AgentRegistry::new(), tools: ToolRegistry::new(), prompts: PromptRegistry::new(), models };
//!
//! let scope = Scope::root("harness");
//! let session = Session::new(SessionId::new("s-1"), None);
//! let plan = AgentPlan::new(session, ModelChoice::new("scripted", "greeting"), scope.clone());
//! let led = AgentLoop::new(deps, LoopConfig::default()).create(plan).await?;
//!
//! led.agent().follow_up(Message::user("hello"))?;
//! led.agent().when_idle().await;
//! let last = led.agent().session().events().pop().map(|event| event.data);
//! assert_eq!(last, Some(EventData::TurnEnd { turn: 1, reason: TurnEnd::Completed }));
//!
//! scope.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - **Model-visible means logged.** A request can be rebuilt from the log alone
//!   ([`request_at`](dsh_session::request_at)).
//! - **Told means logged.** What a result tells (the end of a task, a part of its output) counts as told when the result is
//!   in the log; a notice, when its message is.
//! - **No lost wake-up.** See [`dsh_agent::Driver`].
//! - **A failure ends the turn.** Never the driver, and never without its `turn/end`.
//! - **Retries are new steps.** A request that failed before its answer was whole is sent again as the
//!   [`RetryPolicy`](dsh_llm::RetryPolicy) says; nothing of the failed answer is kept, not even what it cost. What came
//!   meanwhile is told with it.
//! - **What cannot be written is not acted upon.** A log whose file cannot be written ends the turn (`LOG_NOT_WRITTEN`):
//!   nothing is asked or started any more, calls that run are told to stop and awaited. The log in memory has everything,
//!   and the next turn writes it.
//! - **A cancellation** stops the request, starts no further call, awaits those that run, and keeps what the model had said.
//!   Background tasks go on.

mod config;
mod error;
mod order;
mod service;

mod batch;
mod step;
mod turn;

mod live;

pub use config::{AgentPlan, LoopConfig, ModelChoice};
pub use error::CreateError;
pub use live::Live;
pub use order::{ToolOrder, ToolOrderError};
pub use service::{AgentLoop, Deps, LedAgent, ModelSeat};
