//! The driver of agents: turns, steps, tool batches, retries.
//!
//! An [`AgentLoop`] makes [`LedAgent`]s: agents that work on their own. A message or a notice opens a turn; in each step of
//! it the model is asked, what it calls is run, and what came meanwhile is told; when it has nothing more to say and
//! nothing came, the turn is closed. All of it is in the session's log, and the model sees nothing that is not.
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
//!   [`RetryPolicy`](dsh_llm::RetryPolicy) says; nothing of the failed answer is kept.
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

pub use config::{AgentPlan, BoxError, Compose, Composed, LoopConfig, ModelChoice};
pub use error::CreateError;
pub use live::Live;
pub use order::{ToolOrder, ToolOrderError};
pub use service::{AgentLoop, Deps, LedAgent};
