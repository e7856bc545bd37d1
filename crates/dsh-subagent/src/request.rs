//! What a child is asked to do.

use std::sync::Arc;

use dsh_agent::{Agent, ModelRoute};
use dsh_llm::ContentBlock;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What a child is asked to do, and by whom.
#[derive(Debug, Clone)]
pub struct StartRequest {
    /// The task.
    pub prompt: Vec<ContentBlock>,
    /// Who delegates. The run lives in its scope: it ends with it, at the latest.
    pub parent: Arc<Agent>,
    /// Asks for the end of the start and of the run.
    pub token: CancellationToken,
    /// Which model answers, where the deployment has a choice.
    pub model: Option<ModelRoute>,
    /// The shape of a [structured result](crate::RunResult::structured): a JSON Schema.
    pub output_schema: Option<Value>,
    /// How many agents may stand above the child, itself not counted; 0 forbids it. See [`child_depth`](crate::child_depth).
    pub max_depth: Option<u64>,
    /// Which tools it has.
    pub tool_filter: Option<ToolFilter>,
    /// Takes the place of the deployment's persona.
    pub persona: Option<String>,
    /// A few words for people.
    pub label: Option<String>,
}

/// Which tools a child has. An absent list restricts nothing; an empty `allow` leaves none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// Only these.
    pub allow: Option<Vec<String>>,
    /// None of these.
    pub deny: Option<Vec<String>>,
}

impl StartRequest {
    /// A task and nothing else.
    pub fn new(prompt: impl Into<String>, parent: Arc<Agent>, token: CancellationToken) -> Self {
        Self {
            prompt: vec![ContentBlock::text(prompt)],
            parent,
            token,
            model: None,
            output_schema: None,
            max_depth: None,
            tool_filter: None,
            persona: None,
            label: None,
        }
    }
}
