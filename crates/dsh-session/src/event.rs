//! Entries of the log and their wire form.

use dsh_llm::{AssistantBlock, CallId, ContentBlock, FinishReason, RequestHeader, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error, ser::SerializeStruct};
use serde_json::Value;

use crate::Message;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Event {
    /// Its place in the log, counted from 0 without gaps.
    pub seq: u64,
    /// When it was appended, in milliseconds since the Unix epoch; never before its predecessor.
    pub time: u64,
    /// What happened.
    #[serde(flatten)]
    pub data: EventData,
}

/// What happened. Turns and steps are numbered from 1, the steps of each turn anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum EventData {
    /// The agent begins to work.
    #[serde(rename = "turn/start")]
    TurnStart {
        /// Number of the turn.
        turn: u64,
        /// Why it begins.
        trigger: TurnTrigger,
    },
    /// The agent is idle again.
    #[serde(rename = "turn/end")]
    TurnEnd {
        /// Number of the turn.
        turn: u64,
        /// Why it is over.
        reason: TurnEnd,
    },
    /// One request to the model begins: what was logged before is what it shows.
    #[serde(rename = "step/start")]
    StepStart {
        /// Number of the turn.
        turn: u64,
        /// Number of the step.
        step: u64,
    },
    /// The request was answered, and so were the calls in its answer; or it failed.
    #[serde(rename = "step/end")]
    StepEnd {
        /// Number of the turn.
        turn: u64,
        /// Number of the step.
        step: u64,
    },
    /// What this and the following requests have beside messages.
    #[serde(rename = "request/header")]
    RequestHeader {
        /// Why it is logged.
        reason: HeaderReason,
        /// All of it.
        header: RequestHeader,
    },
    /// Somebody chose the model that answers from the next request on. It stands anywhere, also between turns: no model
    /// sees it.
    #[serde(rename = "model/choice")]
    ModelChoice {
        /// Who is asked.
        provider: String,
        /// The provider's name of the model.
        model: String,
    },
    /// The model is told something.
    #[serde(rename = "user/message")]
    UserMessage(Message),
    /// What the model answered.
    #[serde(rename = "assistant/message")]
    AssistantMessage {
        /// What it wrote.
        content: Vec<AssistantBlock>,
        /// Why it stopped; nothing when it did not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish: Option<FinishReason>,
        /// What it cost, if that was told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Whether this is only what had come when the request was cancelled. Its tool calls are never run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// A tool that the model called begins to run, or is skipped: its result says which.
    #[serde(rename = "tool/call", rename_all = "camelCase")]
    ToolCall {
        /// Ties the result to this call.
        call_id: CallId,
        /// Name of the tool.
        name: String,
        /// The arguments as the model wrote them: JSON, if it wrote JSON.
        arguments: String,
    },
    /// A call that the model made is answered, whether it was run or not.
    #[serde(rename = "tool/result", rename_all = "camelCase")]
    ToolResult {
        /// The call it answers.
        call_id: CallId,
        /// What the model reads.
        content: Vec<ContentBlock>,
        /// Whether the call failed.
        is_error: bool,
        /// What failed, for programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorInfo>,
        /// What the tool returned, for programs.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "present"
        )]
        value: Option<Value>,
    },
}

/// Why a turn begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnTrigger {
    /// Somebody said something to the agent.
    Message,
    /// There is news that nobody asked for.
    Notice,
}

/// Why a turn is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TurnEnd {
    /// The model had nothing more to do.
    Completed,
    /// It was cancelled.
    Aborted {
        /// By whom or what for.
        reason: String,
    },
    /// The agent was disposed.
    Disposed,
    /// The model reached its limit of tokens in the middle of an answer.
    MaxTokens,
    /// Something failed.
    Error {
        /// In which step; 0 before the first one.
        step: u64,
        /// What happened.
        message: String,
        /// For programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
    /// The harness died. Written when the log is opened again, and only then.
    Interrupted,
}

/// Why a request header is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderReason {
    /// The first request of the session.
    Initial,
    /// The first request since the session was taken up again.
    Resume,
    /// It is another one than that of the request before.
    Change,
}

/// What failed, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    /// Its sort, such as `ToolTimeoutError`.
    pub name: String,
    /// Its code, such as `TOOL_TIMEOUT`.
    pub code: String,
}

impl EventData {
    /// The `type` of its wire form.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TurnStart { .. } => "turn/start",
            Self::TurnEnd { .. } => "turn/end",
            Self::StepStart { .. } => "step/start",
            Self::StepEnd { .. } => "step/end",
            Self::RequestHeader { .. } => "request/header",
            Self::ModelChoice { .. } => "model/choice",
            Self::UserMessage(_) => "user/message",
            Self::AssistantMessage { .. } => "assistant/message",
            Self::ToolCall { .. } => "tool/call",
            Self::ToolResult { .. } => "tool/result",
        }
    }
}

/// Written by hand for the order of the keys, which a reader of a raw log sees: what and when before the long part.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tagged = serde_json::to_value(&self.data).map_err(S::Error::custom)?;
        let mut envelope = serializer.serialize_struct("Event", 4)?;
        envelope.serialize_field("type", self.data.kind())?;
        envelope.serialize_field("seq", &self.seq)?;
        envelope.serialize_field("time", &self.time)?;
        envelope.serialize_field("data", &tagged["data"].take())?;
        envelope.end()
    }
}

/// A value that is there is there, also when it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
