//! The services of this program: the bundle, with commands under guards.

use dsh_agent_core::{AgentCore, AssembleError, Config, Parts};
use dsh_llm::ModelRegistry;
use dsh_subprocess::{GuardConfig, GuardError, Launcher};

/// Puts the services together. Commands run under guards of this very program, where the system has what that needs;
/// elsewhere in process groups, which the log says. A cgroup that the configuration names must be usable.
pub(crate) fn assemble(config: Config, models: ModelRegistry) -> Result<AgentCore, AssembleError> {
    let guards = GuardConfig::own_program().cgroups(config.bash.cgroups());
    let launcher = match Launcher::guarded(guards) {
        Ok(launcher) => launcher,
        Err(error @ GuardError::Cgroup { .. }) => return Err(error.into()),
        Err(error) => {
            tracing::warn!("commands run in process groups only: {error}");
            Launcher::groups()
        }
    };
    let parts = Parts { launcher, models };
    AgentCore::assemble_with(config, parts)
}
