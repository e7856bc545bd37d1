//! The id of a conversation.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The id of a session, and of the agent that leads it: there is no second id.
///
/// The caller chooses it; it is compared and printed, never interpreted. Cloning shares the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// The id with this wire form.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The wire form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
