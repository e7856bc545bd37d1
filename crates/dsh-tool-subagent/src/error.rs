//! Why the tool could not be installed.

use dsh_scope::Scope;
use thiserror::Error;

use crate::config::ConfigError;

/// The tool could not be installed; nothing of it stays registered.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The settings cannot be used, or the provider that is registered cannot do what they ask of it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tool was refused.
    #[error("tool-subagent: {0}")]
    Tool(#[from] dsh_tools::RegisterError),
    /// The scope, or the agent, is closing.
    #[error("cannot install tool-subagent on inactive scope \"{scope}\"")]
    ScopeClosed {
        /// The scope's name.
        scope: String,
    },
}

impl InstallError {
    pub(crate) fn closed(scope: &Scope) -> Self {
        Self::ScopeClosed {
            scope: scope.name().to_owned(),
        }
    }
}
