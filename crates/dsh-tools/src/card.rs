//! Render intents: how a user interface shows a call and its result, whatever protocol it speaks.

use std::path::PathBuf;

use dsh_llm::ContentBlock;
use serde_json::Value;

/// How a call is shown while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum CallCard {
    /// A titled row.
    Generic {
        /// What is being done.
        title: String,
        /// What sort of thing it is.
        kind: CardKind,
        /// The argument worth showing as it was given.
        raw_input: Option<Value>,
        /// What to show below the title.
        content: Vec<ContentBlock>,
    },
    /// A terminal.
    Terminal {
        /// The command.
        title: String,
        /// What it is for.
        description: Option<String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
}

/// What sort of thing a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CardKind {
    /// Looks at something.
    Read,
    /// Runs or ends something.
    Execute,
    /// Anything else.
    Other,
}

/// How a result is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultCard {
    /// A titled row.
    Generic {
        /// Replaces the call's title.
        title: Option<String>,
        /// What to show below the title.
        content: Vec<ContentBlock>,
    },
    /// The output of a terminal.
    Terminal {
        /// What was printed.
        output: String,
        /// How the command ended, if it did.
        exit: Option<TerminalExit>,
    },
}

/// How a command in a terminal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalExit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(String),
}
