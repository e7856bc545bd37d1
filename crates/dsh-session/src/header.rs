//! The first line of a log file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{SessionId, clock::epoch_ms};

/// What a session is, apart from what happened in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Its id.
    pub id: SessionId,
    /// When it began, in milliseconds since the Unix epoch.
    pub created_at: u64,
    /// The directory its tools work in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The session that it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<SessionId>,
    /// How many agents stand above its own: 0 for one that a person or a client talks to. It goes with the log, so going on
    /// with a session gives nobody a new budget.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub delegation_depth: u64,
    /// How many of its first events are those of the parent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed_length: u64,
    /// The preset that its agent was composed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

impl SessionHeader {
    /// The version of the file format: the only one that is written or read.
    pub const VERSION: u64 = 0;

    /// That of a session that begins now.
    pub fn new(id: SessionId, cwd: Option<PathBuf>) -> Self {
        Self {
            id,
            created_at: epoch_ms(),
            cwd,
            parent_session: None,
            delegation_depth: 0,
            seed_length: 0,
            preset: None,
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
