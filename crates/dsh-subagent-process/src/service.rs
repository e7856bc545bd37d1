//! Offering a product to whoever delegates.

use std::ffi::OsString;
use std::sync::Arc;

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent::{RegisterError, SubagentProvider, SubagentRegistry};
use dsh_subprocess::Launcher;
use tokio_util::sync::CancellationToken;

use crate::ConfigError;

/// What a provider of a product needs.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Where it is offered.
    pub subagents: SubagentRegistry,
    /// What starts its processes.
    pub launcher: Launcher,
    /// Takes the grace from every product that is ended, once it is cancelled.
    pub hurry: CancellationToken,
    /// What is left of the program's own environment when its secrets are taken out.
    pub ambient: Vec<(OsString, OsString)>,
}

/// Why a provider was not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The registry did not take it.
    #[error("{crate_name}: {source}")]
    Register {
        /// Whose provider it is.
        crate_name: &'static str,
        /// Why.
        source: RegisterError,
    },
}

impl Deps {
    /// Offers a provider under this name for as long as `scope`, or until the handle is disposed.
    ///
    /// # Errors
    ///
    /// [`InstallError::Register`]. Nothing is offered then.
    pub fn offer(
        &self,
        scope: &Scope,
        crate_name: &'static str,
        name: String,
        provider: impl SubagentProvider,
    ) -> Result<EffectHandle, InstallError> {
        let registered = self.subagents.register(scope, name, Arc::new(provider));
        registered.map_err(|source| InstallError::Register { crate_name, source })
    }
}
