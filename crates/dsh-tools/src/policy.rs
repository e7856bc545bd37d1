//! What a harness decides about calls, whatever tool they are for.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_llm::{CallId, ContentBlock};
use serde_json::Value;

use crate::result::ToolResult;

/// Decides about calls: before the body runs, and about what it returned.
///
/// Policies are asked in the order of their registration, and can only make things stricter: the first that denies a
/// call ends the matter, and nobody allows what another one wants to be asked for.
///
/// # Cancel safety
///
/// The futures are dropped when the call is given up.
#[async_trait]
pub trait CallPolicy: Send + Sync + 'static {
    /// Whether the call may run.
    async fn before(&self, _call: &PendingCall) -> Verdict {
        Verdict::Allow
    }

    /// What the model gets of the result. Also asked about calls that were denied.
    async fn after(&self, _call: &PendingCall, _result: &ToolResult) -> Review {
        Review::Accept
    }
}

/// A call that somebody decides about.
#[derive(Debug, Clone)]
pub struct PendingCall {
    /// Name of the tool.
    pub tool: String,
    /// The arguments: JSON where they are JSON, but not checked.
    pub args: Value,
    /// Who calls; `None` = nobody in particular.
    pub caller: Option<Arc<Agent>>,
    /// The id that the model gave the call.
    pub call_id: CallId,
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allow,
    /// Only if the [`Approver`] of its caller says so.
    Ask,
    /// It may not.
    Deny {
        /// Told to the model, as it is.
        reason: String,
    },
}

/// What the model gets of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// The result.
    Accept,
    /// The result with other content. What it tells counts as told.
    Replace(Vec<ContentBlock>),
    /// An error in its place. What the result would have told is not told.
    Block {
        /// Told to the model, as it is.
        feedback: String,
    },
}

/// Asks somebody who can answer for an agent whether a call may run.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Asks and waits for the answer.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the call is given up.
    async fn ask(&self, call: &PendingCall) -> Approval;
}

/// The answer to whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// It may.
    Allowed,
    /// It may not.
    Denied,
    /// Nobody is there to answer.
    Unanswered,
}
