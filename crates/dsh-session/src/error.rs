//! Why something was not logged.

use dsh_llm::CallId;

/// Why an event was not appended. The log is as it was.
///
/// `kind` is the `type` of the refused event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// No turn is open.
    #[error("{kind} outside a turn: append turn/start first")]
    OutsideTurn {
        /// What was refused.
        kind: &'static str,
    },
    /// No step is open.
    #[error("{kind} outside a step: append step/start first")]
    OutsideStep {
        /// What was refused.
        kind: &'static str,
    },
    /// A turn is open.
    #[error("{kind} while turn {turn} is open: append its turn/end first")]
    TurnOpen {
        /// What was refused.
        kind: &'static str,
        /// The turn that is open.
        turn: u64,
    },
    /// A step is open.
    #[error("{kind} while step {step} is open: append its step/end first")]
    StepOpen {
        /// What was refused.
        kind: &'static str,
        /// The step that is open.
        step: u64,
    },
    /// It names a turn or step that is not the open one.
    #[error("{kind} for {named} while {open} is open")]
    NotTheOpenOne {
        /// What was refused.
        kind: &'static str,
        /// What it names.
        named: Ordinal,
        /// What is open.
        open: Ordinal,
    },
    /// Numbers increase.
    #[error("{kind} for {named} after {last}: numbers only increase")]
    NumberTaken {
        /// What was refused.
        kind: &'static str,
        /// What it names.
        named: Ordinal,
        /// The last one that there was.
        last: Ordinal,
    },
    /// Another turn must be able to follow.
    #[error("{kind} for turn {turn}, after which no number is left: go on in a new session")]
    LastNumber {
        /// What was refused.
        kind: &'static str,
        /// What it names.
        turn: u64,
    },
    /// A request header stands directly after the start of its step.
    #[error("request/header in the middle of step {step}: append it directly after step/start")]
    LateHeader {
        /// The step that is open.
        step: u64,
    },
    /// The model would seem to have read it before it answered.
    #[error("user/message before the answer of step {step}: append it before step/start or after the answer")]
    BeforeAnswer {
        /// The step that is open.
        step: u64,
    },
    /// A step has one answer.
    #[error("a second assistant/message in step {step}: begin another step")]
    SecondAnswer {
        /// The step that is open.
        step: u64,
    },
    /// Two calls of one answer have the same id.
    #[error("assistant/message with two calls {:?}: give each call an id of its own", call_id.as_str())]
    DuplicateCall {
        /// The id.
        call_id: CallId,
    },
    /// No such call waits for that in the open step.
    #[error("{kind} for call {:?}, which is not open in this step", call_id.as_str())]
    NoSuchCall {
        /// What was refused.
        kind: &'static str,
        /// The id that it names.
        call_id: CallId,
    },
    /// The answer's calls come first.
    #[error("{kind} while call {:?} is unanswered: append its tool/result first", call_id.as_str())]
    Unanswered {
        /// What was refused.
        kind: &'static str,
        /// The first call without a result.
        call_id: CallId,
    },
    /// It could not be read back from a file.
    #[error("{kind} with {what}, which would be lost in the log")]
    NotLossless {
        /// What was refused.
        kind: &'static str,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// A turn or a step by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordinal {
    /// A turn.
    Turn(u64),
    /// A step of the open turn.
    Step(u64),
}

impl std::fmt::Display for Ordinal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Turn(number) => write!(f, "turn {number}"),
            Self::Step(number) => write!(f, "step {number}"),
        }
    }
}
