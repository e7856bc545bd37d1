//! What messages are made of.

use serde::{Deserialize, Serialize};

use crate::CallId;

/// One piece of what a model reads.
///
/// The wire form is a JSON object tagged by `type`. A match over it is meant to be exhaustive: a new kind of content
/// is a decision for every reader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ContentBlock {
    /// Plain text.
    Text {
        /// The text, as it is.
        text: String,
    },
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
        }
    }
}

/// The text of all text blocks, one after the other, with nothing added between them.
pub fn text_of(content: &[ContentBlock]) -> String {
    content.iter().filter_map(ContentBlock::as_text).collect()
}

/// One piece of what a model writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum AssistantBlock {
    /// Text for the user.
    Text {
        /// The text, as it came.
        text: String,
    },
    /// What the model thought before it answered. Some providers require it back with the next request.
    Reasoning {
        /// The text, as it came.
        text: String,
    },
    /// The model wants a tool to be called.
    ToolCall(ToolCall),
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Ties the result to this call.
    pub id: CallId,
    /// Name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON, if it wrote JSON.
    pub arguments: String,
}

impl AssistantBlock {
    /// The text of a text block; not that of reasoning.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Reasoning { .. } | Self::ToolCall(_) => None,
        }
    }

    /// The text of a reasoning block.
    pub fn as_reasoning(&self) -> Option<&str> {
        match self {
            Self::Reasoning { text } => Some(text),
            Self::Text { .. } | Self::ToolCall(_) => None,
        }
    }

    /// The call of a tool-call block.
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Text { .. } | Self::Reasoning { .. } => None,
        }
    }
}
