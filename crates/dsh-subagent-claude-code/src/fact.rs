//! What was decided for a run because nobody could be asked.

use crate::config::PermissionMode;

/// A request that nobody could decide, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    /// Whether a tool may be used; we denied it.
    ToolPermission,
    /// Whether a tool may be used; the product denied it, and asked nobody.
    DeniedByProduct,
    /// What an MCP server wanted to know; we declined.
    Elicitation,
    /// A dialog; we cancelled it.
    Dialog,
}

impl Fact {
    /// For the second line of a diagnostic.
    pub(crate) fn line(self, mode: PermissionMode) -> String {
        let (request, decision, reason) = match self {
            Self::ToolPermission => (
                "tool permission",
                "denied",
                "the provider does not request human approval",
            ),
            Self::DeniedByProduct => (
                "tool permission",
                "denied",
                "Claude Code denied the request before an interactive prompt",
            ),
            Self::Elicitation => (
                "MCP elicitation",
                "declined",
                "the provider does not collect interactive MCP input",
            ),
            Self::Dialog => (
                "user dialog",
                "cancelled",
                "the provider does not render blocking dialogs",
            ),
        };
        format!(
            "Claude Code unattended decision (mode: {mode}; request: {request}; decision: {decision}): {reason}"
        )
    }
}
