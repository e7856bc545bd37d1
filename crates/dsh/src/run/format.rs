//! What programs read on stdout. Stable: keys are added, not changed.

use dsh_llm::Usage;
use dsh_tasks::{TaskSnapshot, TaskStatus};
use serde::Serialize;
use serde_json::Value;

/// A line of `stream-json`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Line<'a> {
    /// The first line.
    Session {
        session: &'a str,
        provider: &'a str,
        model: &'a str,
        cwd: Option<&'a str>,
    },
    /// The agent said this.
    Text { turn: u64, text: &'a str },
    /// It calls a tool.
    ToolCall {
        turn: u64,
        id: &'a str,
        name: &'a str,
        arguments: Value,
    },
    /// The tool has answered.
    ToolResult {
        turn: u64,
        id: &'a str,
        text: &'a str,
        is_error: bool,
    },
    /// The agent was told this without having asked.
    Notice {
        turn: u64,
        text: &'a str,
        tasks: &'a [String],
    },
    /// A task is new, right behind the first result that names it, or it has another status: its end comes before the
    /// notice of it, anything else whenever it is seen.
    Task(&'a Task),
    /// The last line.
    Result(Summary<'a>),
}

/// The result: all of `json`, and the last line of `stream-json`.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    pub(super) session: &'a str,
    pub(super) status: &'static str,
    /// What the agent said last.
    pub(super) result: Option<&'a str>,
    /// Why it failed; only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'a str>,
    pub(super) usage: Tokens,
    pub(super) tasks: Vec<&'a Task>,
}

/// A task, with the words that the agent sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) label: String,
    pub(super) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
}

/// What the run cost.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Tokens {
    input_tokens: u64,
    cache_read_tokens: u64,
    output_tokens: u64,
}

impl Task {
    pub(super) fn is_live(&self) -> bool {
        matches!(self.status, "running" | "stopping")
    }

    /// As it was when it was new, should it have ended since.
    pub(super) fn begun(self) -> Self {
        if self.is_live() {
            return self;
        }
        Self {
            status: TaskStatus::Running.as_str(),
            detail: None,
            ..self
        }
    }
}

impl From<&TaskSnapshot> for Task {
    fn from(task: &TaskSnapshot) -> Self {
        Self {
            id: task.id.to_string(),
            kind: task.kind.to_string(),
            label: task.label.to_string(),
            status: task.status.as_str(),
            detail: task.current_detail().map(str::to_owned),
        }
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        let Usage {
            input_tokens,
            cache_read_tokens,
            output_tokens,
        } = usage;
        Self {
            input_tokens,
            cache_read_tokens,
            output_tokens,
        }
    }
}
