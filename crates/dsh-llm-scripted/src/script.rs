//! A script, decoded.

use std::path::PathBuf;

use dsh_llm::{AssistantBlock, FinishReason, ModelError, Usage};

/// What answers one call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    /// What must have been told.
    pub(crate) expect: Vec<String>,
    /// What must be there first.
    pub(crate) wait_for_file: Option<PathBuf>,
    /// What the model writes.
    pub(crate) content: Vec<AssistantBlock>,
    /// What that costs.
    pub(crate) usage: Option<Usage>,
    pub(crate) end: End,
}

/// How an answer ends.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Finish(FinishReason),
    /// Not before it is cancelled.
    Hang,
    /// Without a word.
    Cut,
    Fail(ModelError),
}
