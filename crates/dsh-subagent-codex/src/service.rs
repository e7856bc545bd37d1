//! Installing the provider.

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent_process::{Deps, InstallError, Reports, milliseconds, overlay};

use crate::NAME;
use crate::config::CodexConfig;
use crate::failure::SUBJECT;
use crate::provider::Codex;

/// Offers Codex under the configured name for as long as `scope`, or until the handle is disposed. No process is started;
/// runs that were started by then go on.
///
/// # Errors
///
/// An [`InstallError`]: the configuration cannot be used, or the name is taken. Nothing is offered then.
pub fn install(scope: &Scope, deps: Deps, config: CodexConfig) -> Result<EffectHandle, InstallError> {
    let program = config.find_program()?;
    let codex = Codex {
        reports: Reports::new(NAME, SUBJECT, &config.provider_name),
        program,
        env: overlay(&deps.ambient, &config.env),
        mode: config.permission_mode,
        grace: milliseconds(config.dispose_grace_ms),
        launcher: deps.launcher.clone(),
        hurry: deps.hurry.clone(),
    };
    deps.offer(scope, NAME, config.provider_name, codex)
}
