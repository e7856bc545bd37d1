//! What is wrong with a configuration, and why the executor could not be installed.

use std::fmt;

use dsh_scope::ScopeClosed;
use dsh_subprocess::LimitError;
use thiserror::Error;

/// One configured value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A number that must be positive and finite is not.
    #[error("bash-local: {key} must be a positive finite number")]
    NotPositive {
        /// The key.
        key: &'static str,
    },
    /// A time that is longer than it may be.
    #[error("bash-local: {key} must be no greater than 2147483647")]
    TooGreat {
        /// The key.
        key: &'static str,
    },
    /// The directory is the empty path.
    #[error(
        "bash-local: cwd must name a directory; leave it out for the directory the program was started in"
    )]
    EmptyCwd,
    /// A list of variables holds what can be no variable's name.
    #[error(
        "bash-local: {key} cannot name {name:?}; a name is not empty and holds no \"=\", no NUL and no whitespace"
    )]
    NotAName {
        /// The key.
        key: &'static str,
        /// What stands for a name.
        name: String,
    },
    /// The allow list names a variable that only the harness sets.
    #[error("bash-local: allow_env cannot name \"{name}\"; DSH_ variables are set by the harness alone")]
    Managed {
        /// The variable.
        name: String,
    },
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// The executor could not be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The configured limits cannot be held.
    #[error("bash-local: memory_limit_bytes and pids_limit cannot be held: {0}")]
    Limits(#[from] LimitError),
    /// The scope is closing.
    #[error("bash-local: {0}")]
    Closed(#[from] ScopeClosed<()>),
}
