//! What a model streams.

use serde::{Deserialize, Serialize};

use crate::{AssistantBlock, CallId};

/// One piece of a streamed answer.
///
/// Blocks have an index and may be interleaved. `Usage` comes before `Finish`, and nothing after that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// More text of a block.
    TextDelta {
        /// Of which block.
        index: usize,
        /// To be appended.
        text: String,
    },
    /// More reasoning of a block.
    ReasoningDelta {
        /// Of which block.
        index: usize,
        /// To be appended.
        text: String,
    },
    /// More of a tool call.
    ToolCallDelta {
        /// Of which block.
        index: usize,
        /// The id, in one of the pieces.
        id: Option<CallId>,
        /// The name, in one of the pieces.
        name: Option<String>,
        /// To be appended.
        arguments: String,
    },
    /// A block is complete, and this is it, whatever its deltas were. A second one for the same index means nothing.
    BlockEnd {
        /// Which block.
        index: usize,
        /// All of it.
        block: AssistantBlock,
    },
    /// What the answer cost.
    Usage(Usage),
    /// The answer is over.
    Finish(FinishReason),
}

/// Token counts of one answer; no token is counted twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Read by the model, not from the provider's cache.
    pub input_tokens: u64,
    /// Read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Written by the model, reasoning included.
    pub output_tokens: u64,
}

/// What a provider counts may be any number: a sum stops at the greatest.
impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(other.cache_read_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}

/// Why an answer is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FinishReason {
    /// The model has said what it had to say.
    Stop,
    /// The model waits for tool results.
    ToolCalls,
    /// The limit of tokens was reached: the answer is cut.
    MaxTokens,
    /// The request was cancelled.
    Aborted,
    /// The provider reports a failure within the stream.
    Error {
        /// What it says.
        message: String,
        /// For programs, such as `CONTENT_FILTER`.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}
