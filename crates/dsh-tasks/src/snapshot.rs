//! What is known of a task at one moment, and the lines a model reads about it.

use std::{fmt, sync::Arc};

use dsh_session::SessionId;

use crate::{
    id::{Kind, TaskId},
    outcome::{Cause, OutcomeStatus, Survivor},
    render::{label_line, one_line},
};

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// It works.
    Running,
    /// Its end was asked for and has not come yet.
    Stopping,
    /// It ran to its own end.
    Completed,
    /// Its termination was asked for, or a signal ended it.
    Killed,
    /// It could not be started, or its machinery broke.
    Failed,
}

/// What is known of a task at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSnapshot {
    /// Its id.
    pub id: TaskId,
    /// What sort of work it is.
    pub kind: Kind,
    /// What it does, as its producer wrote it; [`label_line`](Self::label_line) is the form for a line of text.
    pub label: Arc<str>,
    /// The most bytes a model-facing reply about it may have.
    pub output_limit_bytes: Option<u64>,
    /// The session that owns it; nobody's otherwise.
    pub owner: Option<SessionId>,
    /// Where it is in its life.
    pub status: TaskStatus,
    /// How it ended: the producer's detail, then what caused it and what survived where that adds something.
    pub detail: Option<String>,
    /// What its producer says about it right now; only while it is live.
    pub live_detail: Option<String>,
    /// Who asked for its end.
    pub cause: Option<Cause>,
    /// Why it was asked to end.
    pub reason: Option<String>,
    /// Processes that were seen alive when it had ended.
    pub survivors: Vec<Survivor>,
    /// When it was registered, in milliseconds since the epoch.
    pub started_at: u64,
    /// When it ended, in milliseconds since the epoch; present exactly when the status is terminal.
    pub finished_at: Option<u64>,
    /// Whether its end was told, or somebody is committed to tell it: notices stay quiet then.
    pub reported: bool,
    /// The bytes of output it has produced.
    pub bytes: u64,
}

impl TaskStatus {
    /// Whether the task has ended.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Running | Self::Stopping => false,
            Self::Completed | Self::Killed | Self::Failed => true,
        }
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Completed => "completed",
            Self::Killed => "killed",
            Self::Failed => "failed",
        }
    }
}

impl TaskSnapshot {
    /// The line that ends every reply about the task: `[status: completed, exit code: 0]`.
    pub fn status_line(&self) -> String {
        match self.current_detail() {
            Some(detail) => format!("[status: {}, {}]", self.status, one_line(detail)),
            None => format!("[status: {}]", self.status),
        }
    }

    /// Its row in a list: `bash-1 [bash] running — cargo test`.
    pub fn list_line(&self) -> String {
        let status = match &self.live_detail {
            Some(detail) => format!("{}, {}", self.status, one_line(detail)),
            None => self.status.to_string(),
        };
        format!("{} [{}] {status} — {}", self.id, self.kind, self.label_line())
    }

    /// The label as one line of at most 200 characters.
    pub fn label_line(&self) -> String {
        label_line(&self.label)
    }

    /// How it ended, or where it is while it is live.
    pub fn current_detail(&self) -> Option<&str> {
        let detail = if self.status.is_terminal() {
            &self.detail
        } else {
            &self.live_detail
        };
        detail.as_deref()
    }
}

impl From<OutcomeStatus> for TaskStatus {
    fn from(status: OutcomeStatus) -> Self {
        match status {
            OutcomeStatus::Completed => Self::Completed,
            OutcomeStatus::Killed => Self::Killed,
            OutcomeStatus::Failed => Self::Failed,
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
