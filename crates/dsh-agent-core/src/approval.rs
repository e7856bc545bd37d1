//! The policy that asks a person.

use std::collections::BTreeSet;

use async_trait::async_trait;
use dsh_tools::{CallPolicy, PendingCall, Verdict};

/// Wants to be asked for the calls of some tools.
pub(crate) struct AskFirst(pub(crate) BTreeSet<String>);

#[async_trait]
impl CallPolicy for AskFirst {
    async fn before(&self, call: &PendingCall) -> Verdict {
        if self.0.contains(&call.tool) {
            Verdict::Ask
        } else {
            Verdict::Allow
        }
    }
}
