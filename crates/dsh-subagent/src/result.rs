//! What came of a run.

use std::fmt;

use dsh_llm::ContentBlock;
use serde_json::Value;

use crate::Diagnostic;

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunResult {
    /// What the child said in the end. It may be there without a success, as far as the child came.
    pub output: Vec<ContentBlock>,
    /// What the child handed over under the [schema](crate::StartRequest::output_schema) that was asked for.
    pub structured: Option<Value>,
    /// Why it ended. Only [`Completed`](StopReason::Completed) is a success.
    pub stop: StopReason,
    /// What the provider says about a failure; see [`Diagnostic`].
    pub diagnostic: Option<Diagnostic>,
}

/// Why a run ended. Whatever is not [`Completed`](Self::Completed) is a failure, known or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The child was done.
    Completed,
    /// It was cancelled.
    Aborted,
    /// It failed.
    Error,
    /// Its answer was cut off.
    MaxTokens,
    /// It did not want to.
    Refusal,
    /// What no other reason says.
    Other(String),
}

impl RunResult {
    /// An end for this reason, without a word.
    pub fn ended(stop: StopReason) -> Self {
        Self {
            output: Vec::new(),
            structured: None,
            stop,
            diagnostic: None,
        }
    }

    /// A success with this text.
    pub fn completed(text: impl Into<String>) -> Self {
        Self {
            output: vec![ContentBlock::text(text)],
            ..Self::ended(StopReason::Completed)
        }
    }

    /// A run that was cancelled before it said anything.
    pub fn aborted() -> Self {
        Self::ended(StopReason::Aborted)
    }

    /// A failure, with what the provider says of it.
    pub fn failed(stop: StopReason, diagnostic: Option<Diagnostic>) -> Self {
        Self {
            diagnostic,
            ..Self::ended(stop)
        }
    }

    /// With what was said so far.
    #[must_use]
    pub fn with_output(mut self, output: Vec<ContentBlock>) -> Self {
        self.output = output;
        self
    }

    /// The text of its output: what is in text blocks, one after the other.
    pub fn text(&self) -> String {
        self.output.iter().filter_map(ContentBlock::as_text).collect()
    }
}

impl StopReason {
    /// The word for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::Error => "error",
            Self::MaxTokens => "max-tokens",
            Self::Refusal => "refusal",
            Self::Other(reason) => reason,
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
