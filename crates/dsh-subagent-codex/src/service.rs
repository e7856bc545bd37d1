//! Installing the provider.

use std::ffi::OsString;
use std::sync::Arc;

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent::SubagentRegistry;
use dsh_subagent_process::overlay;
use dsh_subprocess::Launcher;

use crate::config::{CodexConfig, PROGRAM_VARIABLE};
use crate::error::InstallError;
use crate::provider::Codex;

/// What the provider needs.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Where it is offered.
    pub subagents: SubagentRegistry,
    /// What starts its processes.
    pub launcher: Launcher,
    /// What is left of the program's own environment when its secrets are taken out.
    pub ambient: Vec<(OsString, OsString)>,
}

/// Offers Codex under the configured name for as long as `scope`, or until the handle is disposed. No process is started;
/// runs that were started by then go on.
///
/// # Errors
///
/// An [`InstallError`]: the configuration cannot be used, or the name is taken. Nothing is offered then.
pub fn install(scope: &Scope, deps: Deps, config: CodexConfig) -> Result<EffectHandle, InstallError> {
    let program = config.resolve(std::env::var_os(PROGRAM_VARIABLE))?;
    let grace = config.grace();
    let codex = Codex {
        env: overlay(&deps.ambient, &config.env),
        name: config.provider_name.clone(),
        program,
        mode: config.permission_mode,
        grace,
        launcher: deps.launcher,
    };
    Ok(deps
        .subagents
        .register(scope, config.provider_name, Arc::new(codex))?)
}
