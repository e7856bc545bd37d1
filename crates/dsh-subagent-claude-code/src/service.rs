//! Offering Claude Code to whoever delegates.

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent_process::{Deps, InstallError, Reports, milliseconds, overlay};

use crate::NAME;
use crate::config::ClaudeCodeConfig;
use crate::failure::SUBJECT;
use crate::provider::ClaudeCode;

/// Offers Claude Code under its configured name for as long as `scope`, or until the handle is disposed. Nothing is started
/// by it, and runs that were started by then go on. Several instances, each with its own name, are several providers.
///
/// # Errors
///
/// An [`InstallError`]; nothing is offered then.
pub fn install(scope: &Scope, deps: Deps, config: ClaudeCodeConfig) -> Result<EffectHandle, InstallError> {
    let program = config.find_program()?;
    let claude_code = ClaudeCode {
        reports: Reports::new(NAME, SUBJECT, &config.provider_name),
        program,
        env: overlay(&deps.ambient, &config.env),
        mode: config.permission_mode,
        grace: milliseconds(config.dispose_grace_ms),
        launcher: deps.launcher.clone(),
        hurry: deps.hurry.clone(),
    };
    deps.offer(scope, NAME, config.provider_name, claude_code)
}
