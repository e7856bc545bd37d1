//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AssistantBlock, CallId, ContentBlock};

/// One request to a model: everything that it sees, and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// What stays the same from request to request.
    pub header: RequestHeader,
    /// The conversation so far. A tool call is followed by its results before anything else.
    pub messages: Vec<ModelMessage>,
}

/// The part of a request that is not the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeader {
    /// Under which name the adapter is registered.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The tools that the model may call, in this order.
    pub tools: Vec<ToolSpec>,
    /// How the answer is sampled.
    #[serde(flatten)]
    pub sampling: Sampling,
}

/// How an answer is sampled; `None` leaves it to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum ModelMessage {
    /// Said to the model, by a person or by the harness.
    User {
        /// What it reads.
        content: Vec<ContentBlock>,
    },
    /// Said by the model.
    Assistant {
        /// What it wrote, in order.
        content: Vec<AssistantBlock>,
    },
    /// What a tool answered.
    #[serde(rename_all = "camelCase")]
    ToolResult {
        /// The call it answers.
        call_id: CallId,
        /// What the model reads.
        content: Vec<ContentBlock>,
        /// Whether the call failed.
        is_error: bool,
    },
}
