//! Offering Claude Code to whoever delegates.

use std::ffi::OsString;
use std::sync::Arc;

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent::SubagentRegistry;
use dsh_subagent_process::overlay;
use dsh_subprocess::Launcher;

use crate::config::{ClaudeCodeConfig, PROGRAM_VARIABLE};
use crate::error::InstallError;
use crate::provider::ClaudeCode;

/// What a provider needs.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Where it is offered.
    pub subagents: SubagentRegistry,
    /// What starts products.
    pub launcher: Launcher,
    /// The scrubbed environment of this program, which products get under what is configured.
    pub ambient: Vec<(OsString, OsString)>,
}

/// Offers Claude Code under its configured name for as long as `scope`, or until the handle is disposed. Nothing is started
/// by it, and runs that were started by then go on. Several instances, each with its own name, are several providers.
///
/// # Errors
///
/// An [`InstallError`]; nothing is offered then.
pub fn install(scope: &Scope, deps: Deps, config: ClaudeCodeConfig) -> Result<EffectHandle, InstallError> {
    let program = config.resolve(std::env::var_os(PROGRAM_VARIABLE))?;
    let env = overlay(&deps.ambient, &config.env);
    let provider = ClaudeCode {
        name: config.provider_name.clone(),
        launcher: deps.launcher,
        program,
        env,
        mode: config.permission_mode,
        grace: config.grace(),
    };
    Ok(deps
        .subagents
        .register(scope, config.provider_name, Arc::new(provider))?)
}
