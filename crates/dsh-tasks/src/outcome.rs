//! Ends and their causes, in the words of a producer.

use std::fmt;

use crate::snapshot::TaskStatus;

/// How a task ended, as its producer saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub(crate) status: OutcomeStatus,
    pub(crate) detail: Option<String>,
    pub(crate) output: Option<String>,
    pub(crate) survivors: Vec<Survivor>,
    pub(crate) cause: Option<Cause>,
}

/// The three ends a task can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeStatus {
    /// It ran to its own end, whatever the result (an exit code of 3 is completed).
    Completed,
    /// Its termination was asked for, or a signal ended it.
    Killed,
    /// It could not be started, or its machinery broke.
    Failed,
}

/// A process that was seen alive when its task had ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    /// Its process id.
    pub pid: u32,
    /// Its command, short.
    pub command: String,
}

/// Who asked for the end of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// A caller, by [`kill`](crate::TaskRegistry::kill).
    Caller,
    /// A caller for whom the owner works, by [`kill`](crate::TaskRegistry::kill).
    Ancestor,
    /// The end of the agent that owned it.
    OwnerDisposed,
    /// The end of the registry.
    ServiceDisposed,
    /// Its own time limit, in milliseconds.
    Deadline(u64),
}

/// What a producer's cancel hook is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    /// Who asks.
    pub cause: Cause,
    /// Why, in the words of who asks.
    pub reason: Option<String>,
}

impl Outcome {
    /// It ran to its own end.
    pub fn completed() -> Self {
        Self::with(OutcomeStatus::Completed)
    }

    /// Its termination was asked for, or a signal ended it.
    pub fn killed() -> Self {
        Self::with(OutcomeStatus::Killed)
    }

    /// It could not be started, or its machinery broke.
    pub fn failed() -> Self {
        Self::with(OutcomeStatus::Failed)
    }

    /// The one whose status has this word: `completed`, `killed`, `failed`.
    pub fn with_word(status: &str) -> Option<Self> {
        let all = [Self::completed(), Self::killed(), Self::failed()];
        all.into_iter()
            .find(|outcome| TaskStatus::from(outcome.status).as_str() == status)
    }

    /// Adds what the kind has to say about the end: `exit code: 3`.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds the final output of a task without an output source.
    #[must_use]
    pub fn output(mut self, output: impl Into<String>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Names the processes that were left alive.
    #[must_use]
    pub fn survivors(mut self, survivors: Vec<Survivor>) -> Self {
        self.survivors = survivors;
        self
    }

    /// Says what ended it, where the producer knows better than the registry (its own deadline).
    #[must_use]
    pub fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// How it ended.
    pub fn status(&self) -> OutcomeStatus {
        self.status
    }

    fn with(status: OutcomeStatus) -> Self {
        Self {
            status,
            detail: None,
            output: None,
            survivors: Vec::new(),
            cause: None,
        }
    }
}

impl Survivor {
    /// All of them in one phrase, `1 process survived: 4242 sleep`; none for nobody.
    pub fn phrase(survivors: &[Survivor]) -> Option<String> {
        let noun = match survivors.len() {
            0 => return None,
            1 => "process",
            _ => "processes",
        };
        let names: Vec<String> = survivors.iter().map(Survivor::to_string).collect();
        let count = survivors.len();
        Some(format!("{count} {noun} survived: {}", names.join(", ")))
    }
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}
