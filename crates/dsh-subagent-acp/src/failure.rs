//! What is said of a failure: fixed words and numbers. What the agent wrote stands only in the source of an error.

use std::fmt;

use dsh_agent::BoxError;
use dsh_subprocess::LeaderExit;

/// What went wrong with an agent, and what is behind it.
#[derive(Debug)]
pub(crate) struct Failure {
    stage: Stage,
    category: Category,
    exit: Option<LeaderExit>,
    source: Option<BoxError>,
}

/// How far it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Process,
    Initialize,
    SessionNew,
    Prompt,
    Teardown,
}

/// What it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    /// The agent answered with an error of this code.
    ErrorResponse(i32),
    /// It wants somebody to log in.
    AuthenticationRequired,
    /// It speaks another version of the protocol.
    ProtocolVersion,
    /// It has a session that it does not name.
    NoSessionId,
    /// What it answered is no answer.
    InvalidResponse,
    /// It said too much.
    AnswerTooLong,
    /// It asked its model as often as it may.
    MaxTurnRequests,
    /// It gave a reason for its end that nobody knows.
    UnknownStopReason,
    /// It ended in the middle.
    ProcessExit,
    /// It stopped to talk.
    Closed,
    Unknown,
}

impl Failure {
    pub(crate) fn new(stage: Stage, category: Category) -> Self {
        Self {
            stage,
            category,
            exit: None,
            source: None,
        }
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// With how the process ended, if it has. One that closed its output had ended.
    pub(crate) fn with_exit(mut self, exit: Option<LeaderExit>) -> Self {
        if exit.is_some() && self.category == Category::Closed {
            self.category = Category::ProcessExit;
        }
        self.exit = exit;
        self
    }

    /// Whether how the process ended tells something about it.
    pub(crate) fn is_silence(&self) -> bool {
        self.category == Category::Closed
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Process => "process",
            Stage::Initialize => "initialize",
            Stage::SessionNew => "session-new",
            Stage::Prompt => "prompt",
            Stage::Teardown => "teardown",
        };
        let category = match self.category {
            Category::ErrorResponse(_) => "error-response",
            Category::AuthenticationRequired => "authentication-required",
            Category::ProtocolVersion => "protocol-version",
            Category::NoSessionId => return f.write_str("ACP child published without a session id"),
            Category::InvalidResponse => "invalid-response",
            Category::AnswerTooLong => "answer-too-long",
            Category::MaxTurnRequests => "max-turn-requests",
            Category::UnknownStopReason => "unknown-stop-reason",
            Category::ProcessExit => "process-exit",
            Category::Closed => "output-closed",
            Category::Unknown => "unknown",
        };
        write!(f, "ACP subagent failure (stage: {stage}; category: {category}")?;
        if let Category::ErrorResponse(code) = self.category {
            write!(f, "; error code: {code}")?;
        }
        if let Some(exit) = self.exit {
            write!(f, "; {exit}")?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
