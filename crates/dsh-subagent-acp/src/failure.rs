//! The words for a failure. Nothing that the agent wrote is in them.

use dsh_subagent_process::{Failure, Subject};

/// What fails here.
pub(crate) const SUBJECT: Subject = Subject::Protocol("ACP");

/// A failure, as far as it is known.
pub(crate) fn failure(stage: Stage, category: Category) -> Failure {
    let failure = Failure::new(SUBJECT, stage.as_str(), category.as_str());
    match category {
        Category::ErrorResponse(code) => failure.with_error_code(code),
        _ => failure,
    }
}

/// How far it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Process,
    Initialize,
    SessionNew,
    Prompt,
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
    /// What it answered is no answer.
    InvalidResponse,
    /// It said too much.
    AnswerTooLong,
    /// It wrote a line that is longer than any message may be.
    LineTooLong,
    /// It asked its model as often as it may.
    MaxTurnRequests,
    /// It gave a reason for its end that nobody knows.
    UnknownStopReason,
    /// It ended in the middle.
    ProcessExit,
    /// It stopped to talk.
    OutputClosed,
    /// It is known for no more than its stage.
    Unknown,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Initialize => "initialize",
            Self::SessionNew => "session-new",
            Self::Prompt => "prompt",
        }
    }
}

impl Category {
    fn as_str(self) -> &'static str {
        match self {
            Self::ErrorResponse(_) => "error-response",
            Self::AuthenticationRequired => "authentication-required",
            Self::ProtocolVersion => "protocol-version",
            Self::InvalidResponse => "invalid-response",
            Self::AnswerTooLong => "answer-too-long",
            Self::LineTooLong => "line-too-long",
            Self::MaxTurnRequests => "max-turn-requests",
            Self::UnknownStopReason => "unknown-stop-reason",
            Self::ProcessExit => "process-exit",
            Self::OutputClosed => "output-closed",
            Self::Unknown => "unknown",
        }
    }
}
