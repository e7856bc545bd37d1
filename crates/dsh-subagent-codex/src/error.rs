//! What is wrong with a configuration, and why a provider was not installed.

use std::fmt;
use std::path::PathBuf;

use dsh_subagent::RegisterError;

/// One configured value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The provider has no name.
    #[error("subagent-codex: provider_name must not be empty")]
    EmptyProviderName,
    /// Nothing names the program.
    #[error(
        "subagent-codex: no program: set program, or the environment variable DSH_CODEX, to the absolute path of the native \
         codex program"
    )]
    NoProgram,
    /// The program is named by something that would have to be searched.
    #[error("subagent-codex: {key} must be the absolute path of the native codex program, not {}", .program.display())]
    RelativeProgram {
        /// The key, or the variable.
        key: &'static str,
        /// What it says.
        program: PathBuf,
    },
    /// The environment holds what can be no variable's name.
    #[error("subagent-codex: env cannot name {name:?}; a name is not empty and holds neither \"=\" nor NUL")]
    NotAName {
        /// What stands for a name.
        name: String,
    },
    /// The grace is no time.
    #[error("subagent-codex: dispose_grace_ms must be a positive finite number")]
    GraceNotPositive,
    /// The grace is longer than it may be.
    #[error("subagent-codex: dispose_grace_ms must be no greater than 2147483647")]
    GraceTooGreat,
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

/// Why a provider was not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The registry did not take it.
    #[error("subagent-codex: {0}")]
    Register(#[from] RegisterError),
}

impl ConfigErrors {
    pub(crate) fn unless_empty(faults: Vec<ConfigError>) -> Result<(), Self> {
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Self(faults))
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
