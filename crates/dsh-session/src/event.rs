//! Entries of the log and their wire form.

use dsh_llm::{CallId, ContentBlock};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct};

use crate::Message;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Event {
    /// Its place in the log, counted from 0 without gaps.
    pub seq: u64,
    /// When it was appended, in milliseconds since the Unix epoch; never before its predecessor.
    pub time: u64,
    /// What happened.
    #[serde(flatten)]
    pub data: EventData,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum EventData {
    /// The model was told something.
    #[serde(rename = "user/message")]
    UserMessage(Message),
    /// The model called a tool.
    #[serde(rename = "tool/call", rename_all = "camelCase")]
    ToolCall {
        /// Ties the result to this call.
        call_id: CallId,
        /// Name of the tool.
        name: String,
        /// The arguments as the model wrote them: JSON, if it wrote JSON.
        arguments: String,
    },
    /// The model got what a tool returned.
    #[serde(rename = "tool/result", rename_all = "camelCase")]
    ToolResult {
        /// The call it answers.
        call_id: CallId,
        /// What the model reads.
        content: Vec<ContentBlock>,
        /// Whether the call failed.
        is_error: bool,
    },
}

impl EventData {
    fn kind(&self) -> &'static str {
        match self {
            Self::UserMessage(_) => "user/message",
            Self::ToolCall { .. } => "tool/call",
            Self::ToolResult { .. } => "tool/result",
        }
    }

    fn body(&self) -> Body<'_> {
        match self {
            Self::UserMessage(message) => Body::UserMessage(message),
            Self::ToolCall {
                call_id,
                name,
                arguments,
            } => Body::ToolCall {
                call_id,
                name,
                arguments,
            },
            Self::ToolResult {
                call_id,
                content,
                is_error,
            } => Body::ToolResult {
                call_id,
                content,
                is_error: *is_error,
            },
        }
    }
}

/// Written by hand for the order of the keys, which a reader of a raw log sees: what and when before the long part.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut envelope = serializer.serialize_struct("Event", 4)?;
        envelope.serialize_field("type", self.data.kind())?;
        envelope.serialize_field("seq", &self.seq)?;
        envelope.serialize_field("time", &self.time)?;
        envelope.serialize_field("data", &self.data.body())?;
        envelope.end()
    }
}

/// The `data` of an envelope, borrowed from the event.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Body<'a> {
    UserMessage(&'a Message),
    ToolCall {
        call_id: &'a CallId,
        name: &'a str,
        arguments: &'a str,
    },
    ToolResult {
        call_id: &'a CallId,
        content: &'a [ContentBlock],
        is_error: bool,
    },
}
