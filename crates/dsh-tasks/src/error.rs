//! Refusals, one enum per family of operations; their texts are part of the contract.

use std::error::Error;

use crate::{
    id::TaskId,
    render::json_number,
    vocabulary::{RunningTask, Vocabulary},
};

/// An error of somebody else's code: a producer's hook, a listener.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why the registry could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The limit is beyond what its configuration can hold.
    #[error(
        "invalid max_concurrent_tasks_per_owner: expected an integer from 1 to 9007199254740991, got {0}"
    )]
    Limit(u64),
    /// The scope it was to live on has ended.
    #[error("cannot install the task registry on inactive scope \"{0}\"")]
    ScopeClosed(String),
}

/// Why a task was not started. Unless it says otherwise nothing has run and no id was used.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The registry is being disposed.
    #[error("{}", .0.closing())]
    Closing(Vocabulary),
    /// No control surface serves the owner: nobody could read or stop the task.
    #[error("{}", .0.no_surface())]
    NoSurface(Vocabulary),
    /// The kind is empty.
    #[error("{}", .0.invalid_kind())]
    Kind(Vocabulary),
    /// The label is empty.
    #[error("{}", .0.invalid_label())]
    Label(Vocabulary),
    /// The output limit is no positive safe integer.
    #[error("invalid outputLimitBytes: expected a positive safe integer, got {0}")]
    OutputLimit(u64),
    /// The registry was installed without agents, so it cannot own work by one.
    #[error("{}", .0.no_agents())]
    NoAgents(Vocabulary),
    /// The owner is not the instance that is registered under its id.
    #[error("{}", .vocabulary.not_registered(.agent))]
    NotRegistered {
        /// The words of this deployment.
        vocabulary: Vocabulary,
        /// Id of the agent.
        agent: String,
    },
    /// The owner's scope is closing; the text is the scope's.
    #[error("{0}")]
    OwnerClosing(String),
    /// The owner has as many live tasks as it may have.
    #[error("{}", .vocabulary.limit_reached(*.limit, .running))]
    Limit {
        /// The words of this deployment.
        vocabulary: Vocabulary,
        /// The limit.
        limit: u64,
        /// What fills it, oldest first. Starts that have not ended yet count and have no id.
        running: Vec<RunningTask>,
    },
    /// The producer's `run` refused: its own error.
    #[error("{0}")]
    Run(BoxError),
    /// The producer's `run` panicked: the panic's text.
    #[error("{0}")]
    Panicked(String),
    /// `run` took longer than the disposal that began meanwhile; its work was told to cancel.
    #[error("{}", .0.closing())]
    TooLate(Vocabulary),
}

/// Why a caller was refused a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No such task, with the ids the caller may use.
    #[error("{}", .vocabulary.unknown(.id, .known))]
    Unknown {
        /// The words of this deployment.
        vocabulary: Vocabulary,
        /// The id asked for.
        id: TaskId,
        /// The tasks of the caller.
        known: Vec<TaskId>,
    },
    /// It ended, and its record was evicted to make room.
    #[error("{}", .vocabulary.expired(.id))]
    Expired {
        /// The words of this deployment.
        vocabulary: Vocabulary,
        /// The id asked for.
        id: TaskId,
    },
    /// It is another session's.
    #[error("{}", .vocabulary.foreign(.id))]
    Foreign {
        /// The words of this deployment.
        vocabulary: Vocabulary,
        /// The id asked for.
        id: TaskId,
    },
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The caller was refused the task.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The output source panicked: the panic's text. Nothing was consumed.
    #[error("{0}")]
    Source(String),
}

/// Why a wait ended without a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// The caller was refused the task.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The timeout is no positive number.
    #[error("invalid wait timeout: expected a positive number of milliseconds, got {}", json_number(*.0))]
    Timeout(f64),
    /// The caller's token was cancelled. The task is as it was.
    #[error("wait aborted")]
    Aborted,
}

/// Why a kill failed. The task is as it was.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// The caller was refused the task.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The producer's cancel hook failed: its own error.
    #[error("{0}")]
    Cancel(BoxError),
    /// The producer's cancel hook panicked: the panic's text.
    #[error("{0}")]
    Panicked(String),
}
