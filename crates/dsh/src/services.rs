//! The services of this program: the bundle, with commands under guards.

use dsh_agent_core::{AgentCore, AssembleError, Config, Parts};
use dsh_llm::ModelRegistry;
use dsh_scope::Scope;
use dsh_subprocess::{GuardConfig, GuardError, Launcher};

use crate::settings::Settings;

/// Puts the services together. Commands run under guards of this very program, where the system has what that needs;
/// elsewhere in process groups, which the log says. A cgroup that the configuration names must be usable.
pub(crate) async fn assemble(settings: Settings, models: ModelRegistry) -> Result<AgentCore, AssembleError> {
    let Settings {
        config,
        composition,
        named_preset: _,
    } = settings;
    let scope = Scope::root("agent core");
    let parts = Parts {
        scope: scope.clone(),
        launcher: launcher(&config)?,
        models,
        composition,
    };
    let assembled = AgentCore::assemble_with(config, parts);
    if assembled.is_err()
        && let Err(error) = scope.close().await
    {
        tracing::error!("agent core: {error}");
    }
    assembled
}

fn launcher(config: &Config) -> Result<Launcher, AssembleError> {
    let guards = GuardConfig::own_program().cgroups(config.bash.cgroups());
    match Launcher::guarded(guards) {
        Ok(launcher) => Ok(launcher),
        Err(error @ GuardError::Cgroup { .. }) => Err(error.into()),
        Err(error) => {
            tracing::warn!("commands run in process groups only: {error}");
            Ok(Launcher::groups())
        }
    }
}
