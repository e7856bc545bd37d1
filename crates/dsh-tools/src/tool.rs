//! What a tool is, and what passes between it and the pipeline.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_llm::{CallId, ContentBlock};
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::card::{CallCard, ResultCard};
use crate::delivery::Delivery;
use crate::error::ToolError;
use crate::result::ToolResult;

/// One tool that a model can call.
///
/// Only [`definition`](Tool::definition) ever reaches the model. All methods but [`call`](Tool::call) are pure
/// in their arguments, and all of them accept arguments that were not checked yet.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The name, description and input schema that the model sees. Read once, at registration.
    fn definition(&self) -> ToolDefinition;

    /// Whether a call with these arguments may overlap with other calls of the same batch.
    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Exclusive
    }

    /// How a user interface shows the call; `None` = by the tool's name.
    fn present_call(&self, _args: &Value) -> Option<CallCard> {
        None
    }

    /// How a user interface shows the result; `None` = its text.
    fn present_result(&self, _args: &Value, _result: &ToolResult) -> Option<ResultCard> {
        None
    }

    /// The most bytes that the whole result of this call may have, error or not.
    ///
    /// Asked before the body runs, applied after everything else, and only to a result that is one text.
    fn result_limit(&self, _args: &Value, _caller: Option<&Arc<Agent>>) -> Option<usize> {
        None
    }

    /// How long this call may take; `None` for a tool that bounds itself, or needs no bound.
    ///
    /// When it is over, the body is told by its token and given a second, and the result is the failure `TOOL_TIMEOUT`.
    fn timeout(&self, _args: &Value) -> Option<Duration> {
        None
    }

    /// Runs the tool. A cancelled [`ToolContext::token`] asks the body to end soon; what it returns then is
    /// replaced by the pipeline, but for a [`ToolError::aborted_after`].
    ///
    /// # Errors
    /// A [`ToolError`] becomes the error result `Error: <message>` that the model sees.
    ///
    /// # Cancel safety
    /// Whoever called may drop the future at any await: the drop must then end what the body has started.
    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError>;
}

/// What the model is told about a tool. Serializes to the entry of an MCP `tools/list`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The name it is called by.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, as [`schema_of`](crate::schema_of) makes it.
    pub input_schema: Value,
    /// Hints for a client.
    pub annotations: Annotations,
}

/// Hints for a client about what a tool does; `None` = unsaid. The names on the wire are MCP's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// A name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing.
    #[serde(rename = "readOnlyHint", skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    #[serde(rename = "destructiveHint", skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more.
    #[serde(rename = "idempotentHint", skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches things outside the harness.
    #[serde(rename = "openWorldHint", skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// Whether a call may overlap with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// Runs alone: calls before it end first, calls after it wait.
    Exclusive,
    /// May run beside other parallel calls.
    Parallel,
}

/// What a body knows about its call.
#[derive(Clone)]
pub struct ToolContext {
    /// The agent whose model made the call; `None` = nobody in particular.
    pub caller: Option<Arc<Agent>>,
    /// Cancelled when the call is given up.
    pub token: CancellationToken,
    /// The id that the model gave the call.
    pub call_id: CallId,
}

/// What a body returns when it has a result to show.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// What the model sees.
    pub content: Vec<ContentBlock>,
    /// The same result for programs.
    pub value: Option<Value>,
    /// Whether the call failed all the same: a [`ToolError`] has a message only.
    pub is_error: bool,
    /// What becomes true once the model has the result.
    pub deliveries: Vec<Delivery>,
}

impl ToolOutput {
    /// An output of one text block.
    pub fn text(text: impl Into<String>) -> ToolOutput {
        ToolOutput {
            content: vec![ContentBlock::text(text)],
            ..ToolOutput::default()
        }
    }

    /// Adds the result for programs.
    #[must_use]
    pub fn value(mut self, value: Value) -> ToolOutput {
        self.value = Some(value);
        self
    }

    /// Says that the call failed. The text stays as it is.
    #[must_use]
    pub fn failed(mut self) -> ToolOutput {
        self.is_error = true;
        self
    }

    /// Adds something that becomes true once the model has the result.
    #[must_use]
    pub fn delivers(mut self, delivery: Delivery) -> ToolOutput {
        self.deliveries.push(delivery);
        self
    }
}
