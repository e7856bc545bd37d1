//! The background task registry: ids, owners, claims, waits, kills, notices and cleanup.

mod id;
mod outcome;
mod snapshot;
mod vocabulary;
mod work;

mod config;
mod error;

mod service;

#[doc(hidden)]
pub mod core;
mod render;

pub use config::{MAX_LIMIT, TasksConfig};
pub use error::{AccessError, BoxError, InstallError, KillError, ReadError, StartError, WaitError};
pub use id::{Kind, TaskId};
pub use outcome::{CancelRequest, Cause, Outcome, OutcomeStatus, Survivor};
pub use service::{
    Caller, Claim, Deps, KillOutcome, Killed, ListenerHandle, Observation, Serves, SurfaceHandle, TaskDone,
    TaskRead, TaskRegistry, Waited,
};
pub use snapshot::{TaskSnapshot, TaskStatus};
pub use vocabulary::{RunningTask, Vocabulary};
pub use work::{BoxFuture, StartSpec, Work};
