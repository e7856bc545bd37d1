//! Installing the tool.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_scope::{CloseError, Scope};
use dsh_subagent::SubagentRegistry;
use dsh_tasks::TaskRegistry;
use dsh_tools::ToolRegistry;

use crate::config::ToolSubagentConfig;
use crate::error::InstallError;
use crate::mirror::{Mirror, Place};
use crate::tool::Delegation;

/// What the tool needs.
#[derive(Clone)]
pub struct Deps {
    /// Where it is offered.
    pub tools: ToolRegistry,
    /// Who runs the children.
    pub subagents: SubagentRegistry,
    /// Where children in the background go; without it none is offered, and every such call is refused.
    pub tasks: Option<TaskRegistry>,
}

/// The installed tool. Dropping it leaves the tool installed for as long as the scope it was installed on.
pub struct Handle {
    scope: Scope,
}

impl Handle {
    /// Takes the tool away. No child and no provider is touched, and a second install is legal at once.
    ///
    /// # Errors
    ///
    /// See [`Scope::close`].
    ///
    /// # Cancel safety
    ///
    /// The removal goes on when this future is dropped.
    pub async fn uninstall(&self) -> Result<(), CloseError> {
        self.scope.close().await
    }
}

/// Installs the tool for everybody on `scope`. It is there as soon as its provider is, and as long.
///
/// # Errors
///
/// An [`InstallError`]; whatever was registered before it is taken away again in the background.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn install(scope: &Scope, deps: Deps, config: ToolSubagentConfig) -> Result<Handle, InstallError> {
    set_up(scope, Place::Shared, deps, config)
}

/// Installs the tool for one agent, which is as long as it is there. See [`install`].
///
/// # Errors
///
/// As [`install`].
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn install_for(
    agent: &Arc<Agent>,
    deps: Deps,
    config: ToolSubagentConfig,
) -> Result<Handle, InstallError> {
    // Weak: the agent's own scope must not keep it.
    let place = |_| Place::For(Arc::downgrade(agent));
    set_up(agent.scope(), place, deps, config)
}

fn set_up(
    scope: &Scope,
    place: impl FnOnce(Scope) -> Place,
    deps: Deps,
    config: ToolSubagentConfig,
) -> Result<Handle, InstallError> {
    config.validate()?;
    let Deps {
        tools,
        subagents,
        tasks,
    } = deps;
    let own = scope
        .child(format!("tool-subagent {}", config.tool_name))
        .map_err(|_| InstallError::closed(scope))?;
    let delegation = Delegation {
        subagents,
        tasks,
        config,
    };
    let mirror = Mirror::new(place(own.clone()), tools, delegation);
    match mirror.install(&own) {
        Ok(()) => Ok(Handle { scope: own }),
        Err(error) => {
            // A closing parent refuses the spawn, and closes the child itself.
            let _ = scope.spawn("tool-subagent rollback", async move {
                if let Err(error) = own.close().await {
                    tracing::error!("tool-subagent: {error}");
                }
            });
            Err(error)
        }
    }
}
