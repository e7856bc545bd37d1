//! Installing the provider.

use dsh_scope::{EffectHandle, Scope};
use dsh_subagent_process::{Deps, InstallError, Reports, overlay};

use crate::NAME;
use crate::config::AcpConfig;
use crate::failure::SUBJECT;
use crate::provider::Acp;

/// Offers the agent under the configured name for as long as `scope`, or until the handle is disposed. No process is
/// started; runs that were started by then go on.
///
/// # Errors
///
/// An [`InstallError`]: the configuration cannot be used, or the name is taken. Nothing is offered then.
pub fn install(scope: &Scope, deps: Deps, config: AcpConfig) -> Result<EffectHandle, InstallError> {
    let cwd = config.resolve()?;
    let acp = Acp {
        reports: Reports::new(NAME, SUBJECT, &config.provider_name),
        env: overlay(&deps.ambient, &config.env),
        graces: config.graces(),
        command: config.command.into(),
        args: config.args.into_iter().map(Into::into).collect(),
        cwd,
        permission: config.permission,
        launcher: deps.launcher.clone(),
        hurry: deps.hurry.clone(),
    };
    deps.offer(scope, NAME, config.provider_name, acp)
}
