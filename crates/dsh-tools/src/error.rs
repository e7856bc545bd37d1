//! What the model is told when a call fails, and why a registration can be refused.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::limit::head_within;

/// The most bytes that an error repeats of a name that is no tool's.
const MAX_NAME_SHOWN: usize = 200;

/// The code of a call that was entered and given up.
pub(crate) const TOOL_ABORTED: &str = "TOOL_ABORTED";

/// A failed call. The model sees `Error: <message>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    message: String,
    info: Option<ErrorInfo>,
}

impl ToolError {
    /// A failure that only its message describes.
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError {
            message: message.into(),
            info: None,
        }
    }

    /// Adds a name and a code for programs.
    #[must_use]
    pub fn with_info(mut self, name: &'static str, code: &'static str) -> ToolError {
        self.info = Some(ErrorInfo { name, code });
        self
    }

    /// The text without the `Error: ` before it.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Name and code, if the failure has them.
    pub fn info(&self) -> Option<ErrorInfo> {
        self.info
    }

    pub(crate) fn unknown_tool(name: &str) -> ToolError {
        // It comes from outside and may be of any length.
        let shown = head_within(name, MAX_NAME_SHOWN);
        let more = if shown.len() < name.len() { "…" } else { "" };
        ToolError::new(format!("unknown tool {shown:?}{more}")).with_info("UnknownToolError", "UNKNOWN_TOOL")
    }

    pub(crate) fn aborted_before_dispatch() -> ToolError {
        ToolError::new("tool call aborted before dispatch")
            .with_info("AbortError", "TOOL_ABORTED_BEFORE_DISPATCH")
    }

    pub(crate) fn aborted() -> ToolError {
        ToolError::new("tool call aborted").with_info("AbortError", TOOL_ABORTED)
    }

    /// An abort by a body that has something to say of what it had done until then.
    pub fn aborted_after(done: &str) -> ToolError {
        ToolError::new(format!("tool call aborted\n{done}")).with_info("AbortError", TOOL_ABORTED)
    }

    pub(crate) fn timed_out(tool: &str, limit: Duration) -> ToolError {
        ToolError::new(format!("tool {tool:?} timed out after {}ms", limit.as_millis()))
            .with_info("ToolTimeoutError", "TOOL_TIMEOUT")
    }

    pub(crate) fn denied(tool: &str) -> ToolError {
        ToolError::new(format!("tool {tool:?} was not approved"))
            .with_info("ApprovalError", "TOOL_NOT_APPROVED")
    }

    pub(crate) fn nobody_to_ask(tool: &str) -> ToolError {
        ToolError::new(format!("tool {tool:?} requires approval (nobody can be asked)"))
            .with_info("ApprovalError", "TOOL_NOT_APPROVED")
    }

    pub(crate) fn policy_panicked(tool: &str, panic: &impl fmt::Display) -> ToolError {
        ToolError::new(format!("a policy panicked over tool {tool:?}: {panic}"))
            .with_info("PolicyPanic", "POLICY_PANICKED")
    }

    pub(crate) fn panicked(tool: &str, panic: &impl fmt::Display) -> ToolError {
        ToolError::new(format!("tool {tool:?} panicked: {panic}")).with_info("ToolPanic", "TOOL_PANICKED")
    }
}

impl From<ArgsError> for ToolError {
    fn from(error: ArgsError) -> ToolError {
        ToolError::new(error.to_string()).with_info("ToolArgsError", "INVALID_ARGS")
    }
}

/// A failure for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorInfo {
    /// The family of the failure, such as `AbortError`.
    pub name: &'static str,
    /// The failure, such as `TOOL_ABORTED`.
    pub code: &'static str,
}

/// Arguments that do not fit the schema; lists everything that is wrong, in the schema's order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid arguments: {}", .violations.join("; "))]
pub struct ArgsError {
    violations: Vec<String>,
}

impl ArgsError {
    pub(crate) fn new(violations: Vec<String>) -> ArgsError {
        ArgsError { violations }
    }
}

/// Why a tool was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("tool {0:?} is already registered")]
    Duplicate(String),
    /// A restriction denies nothing.
    #[error("a restriction must name a tool")]
    NothingRestricted,
    /// A restriction names what is no tool.
    #[error("a restriction names {0:?}, but there is no such tool")]
    UnknownTool(String),
    /// The scope is closing.
    #[error("cannot do {label}: scope {scope:?} is closing")]
    ScopeClosed {
        /// What was to be registered.
        label: String,
        /// The scope that was to hold it.
        scope: String,
    },
}
