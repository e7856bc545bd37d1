//! The id of a tool call.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The id that ties a tool result to the call it answers.
///
/// Whoever asks for the call chooses it (a model, an MCP client); it is compared and printed, never interpreted.
/// Cloning shares the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// The id with this wire form.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The wire form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
