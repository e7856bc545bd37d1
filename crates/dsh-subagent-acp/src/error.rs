//! What is wrong with a configuration, and why a provider was not installed.

use std::fmt;
use std::path::PathBuf;

use dsh_subagent::RegisterError;

/// One configured value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The provider has no name.
    #[error("subagent-acp: provider_name must not be empty")]
    EmptyProviderName,
    /// There is no program.
    #[error("subagent-acp: command must not be empty")]
    EmptyCommand,
    /// The program would be another one in every directory.
    #[error("subagent-acp: command must be an absolute path or a bare name, not {}", .0.display())]
    RelativeCommand(PathBuf),
    /// The directory has no name.
    #[error("subagent-acp: cwd must not be empty")]
    EmptyCwd,
    /// Nobody knows where the directory begins.
    #[error("subagent-acp: cwd must be an absolute path: {}", .0.display())]
    Relative(PathBuf),
    /// The directory cannot be worked in.
    #[error("subagent-acp: cwd is not an accessible directory: {}", .0.display())]
    Inaccessible(PathBuf),
    /// The environment holds what can be no variable's name.
    #[error("subagent-acp: env cannot name {0:?}; a name is not empty and holds neither \"=\" nor NUL")]
    NotAName(String),
    /// A grace is no time.
    #[error("subagent-acp: {0} must be a positive finite number")]
    GraceNotPositive(&'static str),
    /// A grace is longer than it may be.
    #[error("subagent-acp: {0} must be no greater than 2147483647")]
    GraceTooGreat(&'static str),
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
    #[error("subagent-acp: {0}")]
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
