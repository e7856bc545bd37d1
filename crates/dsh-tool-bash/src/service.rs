//! Installing the tool.

use std::sync::Arc;

use dsh_bash::BashExecutor;
use dsh_scope::{CloseError, Scope};
use dsh_system_prompt::{PromptRegistry, Section};
use dsh_tasks::TaskRegistry;
use dsh_tools::ToolRegistry;

use crate::config::ToolBashConfig;
use crate::error::InstallError;
use crate::kept::KeptOutputs;
use crate::prompt;
use crate::tool::{BashTool, NAME};

/// What the tool needs.
pub struct Deps {
    /// Where it is offered.
    pub tools: ToolRegistry,
    /// Where its guidance is put.
    pub prompts: PromptRegistry,
    /// What runs the commands.
    pub bash: Arc<dyn BashExecutor>,
    /// Where background commands go.
    pub background: Background,
}

/// Where background commands go. Without a registry none is offered, every background call is refused, and what a
/// foreground command leaves running is ended unless it is to be left.
pub enum Background {
    /// They are tasks of this registry.
    Tasks(TaskRegistry),
    /// There is no registry.
    NoRegistry,
    /// The deployment does not want them.
    Off {
        /// What says so, as the refusal names it: `tool_tasks.enabled: false`.
        setting: &'static str,
    },
}

impl Background {
    pub(crate) fn tasks(&self) -> Option<&TaskRegistry> {
        match self {
            Self::Tasks(tasks) => Some(tasks),
            Self::NoRegistry | Self::Off { .. } => None,
        }
    }
}

/// The installed tool. Dropping it leaves the tool installed for as long as the scope it was installed on.
pub struct Handle {
    scope: Scope,
}

impl Handle {
    /// Takes the tool and its guidance away. No command and no background work is touched, and a second [`install`] is
    /// legal at once.
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

/// Installs the `bash` tool and its guidance on `scope`.
///
/// # Errors
///
/// An [`InstallError`]; whatever was registered before it is taken away again in the background.
///
/// # Panics
///
/// Outside a tokio runtime.
pub fn install(scope: &Scope, deps: Deps, config: ToolBashConfig) -> Result<Handle, InstallError> {
    let dsh_home = config
        .dsh_home
        .as_ref()
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| {
            let path = config.dsh_home.clone().unwrap_or_default();
            InstallError::DshHome {
                path,
                error: error.to_string(),
            }
        })?;
    let own = scope
        .child("tool-bash")
        .map_err(|_| InstallError::closed(scope))?;
    let Deps {
        tools,
        prompts,
        bash,
        background,
    } = deps;
    let tool = Arc::new(BashTool {
        bash,
        background,
        config,
        dsh_home,
        kept: KeptOutputs::default(),
    });
    match register(&own, &tools, &prompts, tool) {
        Ok(()) => Ok(Handle { scope: own }),
        Err(error) => {
            // A closing parent refuses the spawn, and closes the child itself.
            let _ = scope.spawn("tool-bash rollback", async move {
                if let Err(error) = own.close().await {
                    tracing::error!("tool-bash: {error}");
                }
            });
            Err(error)
        }
    }
}

fn register(
    scope: &Scope,
    tools: &ToolRegistry,
    prompts: &PromptRegistry,
    tool: Arc<BashTool>,
) -> Result<(), InstallError> {
    tools.register(scope, tool)?;
    prompts.section(
        scope,
        Section::new(format!("tool:{NAME}"), prompt::ORDER, prompt::GUIDANCE),
    )?;
    Ok(())
}
