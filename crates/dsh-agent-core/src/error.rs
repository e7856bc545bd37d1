//! What is wrong with a configuration, and why the services could not be put together.

use std::fmt;
use std::path::PathBuf;

use dsh_tools::head_within;

use crate::composition::{CompositionError, MountError};

/// The most bytes of a key, and of what is wrong with it: both may repeat what stands in the file.
const MAX_SHOWN: usize = 2_000;

/// Why there is no configuration, or no file that would set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// A value has no place in a TOML file.
    Unwritable {
        /// What stands in the way.
        reason: String,
    },
    /// Everything that is wrong in it.
    Faults {
        /// Where the values come from: the file, or `configuration` for values set by a program.
        origin: String,
        /// The faults; never empty.
        faults: Vec<Fault>,
    },
}

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    key: String,
    problem: String,
}

/// Why the services could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The parts of the composition do not fit together, or the configuration does not fit it.
    #[error(transparent)]
    Composition(#[from] CompositionError),
    /// What is to guard commands.
    #[error("cannot guard commands: {0}")]
    Guard(#[from] dsh_subprocess::GuardError),
    /// The executor of commands.
    #[error("cannot install the executor: {0}")]
    Bash(#[from] dsh_bash_local::InstallError),
    /// The task registry.
    #[error("cannot install the task registry: {0}")]
    Tasks(#[from] dsh_tasks::InstallError),
    /// The tools that read, list and kill tasks.
    #[error("cannot install the task tools: {0}")]
    ToolTasks(#[from] dsh_tool_tasks::InstallError),
    /// The rule about what is asked for.
    #[error("cannot install the approval rule: {0}")]
    Approval(#[from] dsh_tools::RegisterError),
    /// The `bash` tool.
    #[error("cannot install the bash tool: {0}")]
    ToolBash(#[from] dsh_tool_bash::InstallError),
    /// A provider of subagents.
    #[error("cannot mount {id}: {source}")]
    Provider {
        /// The row of the profile.
        id: String,
        /// Why not.
        source: MountError,
    },
}

impl AssembleError {
    /// Whether the configuration asks for what cannot be; otherwise it is the system, or the moment.
    pub fn blames_configuration(&self) -> bool {
        match self {
            Self::Config(_) | Self::Composition(_) | Self::Provider { .. } => true,
            Self::Guard(error) => matches!(error, dsh_subprocess::GuardError::Cgroup { .. }),
            Self::Bash(error) => !matches!(error, dsh_bash_local::InstallError::Closed(_)),
            Self::Tasks(error) => matches!(error, dsh_tasks::InstallError::Limit(_)),
            Self::ToolTasks(error) => matches!(error, dsh_tool_tasks::InstallError::Config(_)),
            Self::ToolBash(error) => matches!(error, dsh_tool_bash::InstallError::DshHome { .. }),
            Self::Approval(_) => false,
        }
    }
}

impl Fault {
    pub(crate) fn new(key: &str, problem: String) -> Self {
        Self {
            key: head_within(key, MAX_SHOWN).to_owned(),
            problem: head_within(&problem, MAX_SHOWN).to_owned(),
        }
    }

    /// The key or table that it is about, such as `bash.timeout_ms`; empty when the text is no TOML.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong with it, and what would be right.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => f.write_str(&self.problem),
            key => write!(f, "{key}: {}", self.problem),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, reason } => write!(f, "cannot read {}: {reason}", path.display()),
            Self::Unwritable { reason } => write!(f, "the configuration cannot be written as TOML: {reason}"),
            Self::Faults { origin, faults } => {
                for (index, fault) in faults.iter().enumerate() {
                    write!(f, "{}{origin}: {fault}", if index == 0 { "" } else { "\n" })?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConfigError {}
