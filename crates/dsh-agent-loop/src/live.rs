//! What can be seen of an answer before it is whole.

use std::time::Duration;

/// What can be seen of an answer before it is whole. Only the log tells what was said in the end: text that was seen
/// here is not in it when the request failed after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// More text.
    Text {
        /// Of which turn.
        turn: u64,
        /// Of which step of it.
        step: u64,
        /// To be appended.
        text: String,
    },
    /// More reasoning.
    Reasoning {
        /// Of which turn.
        turn: u64,
        /// Of which step of it.
        step: u64,
        /// To be appended.
        text: String,
    },
    /// The request failed and will be sent again, in a new step.
    Retry {
        /// Of which turn.
        turn: u64,
        /// Of which step of it.
        step: u64,
        /// What went wrong.
        message: String,
        /// When it will be sent again.
        after: Duration,
    },
}
