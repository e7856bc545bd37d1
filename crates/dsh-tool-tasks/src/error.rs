//! Why the tools were not installed.

use dsh_scope::Scope;
use dsh_tools::RegisterError;

use crate::config::ConfigError;

/// Why the tools were not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A tool was refused.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// The guidance was refused.
    #[error(transparent)]
    Section(#[from] dsh_system_prompt::RegisterError),
    /// The scope is closing.
    #[error("cannot install the task tools: scope {0:?} is closing")]
    ScopeClosed(String),
}

impl InstallError {
    pub(crate) fn closed(scope: &Scope) -> InstallError {
        InstallError::ScopeClosed(scope.name().to_owned())
    }
}
