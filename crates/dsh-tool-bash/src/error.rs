//! Why the tool could not be installed.

use std::path::PathBuf;

use dsh_scope::Scope;
use thiserror::Error;

/// The tool could not be installed; nothing of it stays registered.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The scope is closing.
    #[error("cannot install tool-bash on inactive scope \"{scope}\"")]
    ScopeClosed {
        /// The scope's name.
        scope: String,
    },
    /// The tool was refused.
    #[error("tool-bash: {0}")]
    Tool(#[from] dsh_tools::RegisterError),
    /// The guidance was refused.
    #[error("tool-bash: {0}")]
    Prompt(#[from] dsh_system_prompt::RegisterError),
    /// The configured directory cannot be made absolute.
    #[error("tool-bash: dsh_home {path:?} cannot be used: {error}")]
    DshHome {
        /// The directory as configured.
        path: PathBuf,
        /// What the system said.
        error: String,
    },
}

impl InstallError {
    pub(crate) fn closed(scope: &Scope) -> Self {
        Self::ScopeClosed {
            scope: scope.name().to_owned(),
        }
    }
}
