//! The result of one call, as a front door gets it.

use dsh_llm::ContentBlock;
use serde_json::Value;

use crate::delivery::Deliveries;
use crate::error::{ErrorInfo, ToolError};
use crate::tool::ToolOutput;

/// The result of one call. Every call has one, whatever went wrong.
#[derive(Debug)]
pub struct ToolResult {
    /// What the model sees.
    pub content: Vec<ContentBlock>,
    /// Whether the call failed.
    pub is_error: bool,
    /// The failure for programs, where it has a name.
    pub error: Option<ErrorInfo>,
    /// The result for programs.
    pub value: Option<Value>,
    /// To be delivered once the model has this result; dropping them abandons them.
    pub deliveries: Deliveries,
}

impl ToolResult {
    /// The text of the result, if it is exactly one text block.
    pub fn single_text(&self) -> Option<&str> {
        match self.content.as_slice() {
            [block] => block.as_text(),
            _ => None,
        }
    }
}

impl From<ToolOutput> for ToolResult {
    fn from(output: ToolOutput) -> ToolResult {
        ToolResult {
            content: output.content,
            is_error: output.is_error,
            error: None,
            value: output.value,
            deliveries: output.deliveries.into(),
        }
    }
}

impl From<ToolError> for ToolResult {
    fn from(error: ToolError) -> ToolResult {
        ToolResult {
            content: vec![ContentBlock::text(format!("Error: {error}"))],
            is_error: true,
            error: error.info(),
            value: None,
            deliveries: Deliveries::default(),
        }
    }
}
