//! What a deployment can choose about the `bash` tool.

use std::num::NonZeroU64;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the `bash` tool behaves. Every key may be left out; all limits are the executor's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolBashConfig {
    /// Whether commands can run in the background. Off hides the argument and refuses it.
    pub enable_run_in_background: bool,
    /// What happens to processes that a foreground command leaves running. Without it they are adopted where commands
    /// can run in the background, and ended elsewhere.
    pub leftover: Option<Leftover>,
    /// After how many milliseconds without output the owner of a background command is told of it, by a notice. Without it
    /// silence is no news.
    pub stall_notice_ms: Option<NonZeroU64>,
    /// How output is laid out for the model.
    pub rendering: OutputLayout,
    /// Told to commands as `DSH_HOME`; a relative path is taken against the program's working directory.
    pub dsh_home: Option<PathBuf>,
}

impl Default for ToolBashConfig {
    fn default() -> Self {
        Self {
            enable_run_in_background: true,
            leftover: None,
            stall_notice_ms: None,
            rendering: OutputLayout::Sections,
            dsh_home: None,
        }
    }
}

impl ToolBashConfig {
    /// The setting, or what it is without one.
    pub(crate) fn leftover(&self) -> Leftover {
        let unset = if self.enable_run_in_background {
            Leftover::Adopt
        } else {
            Leftover::End
        };
        self.leftover.unwrap_or(unset)
    }
}

/// What happens to processes that a foreground command leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leftover {
    /// They become a background task of the caller; where nobody could control it, they are ended.
    Adopt,
    /// They are ended before the result is returned.
    End,
    /// They go on unnamed until they end by themselves or the executor shuts down.
    Leave,
}

/// How the two output streams are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputLayout {
    /// Standard output, then standard error under a heading.
    Sections,
    /// Both in the order of their arrival.
    Interleaved,
}
