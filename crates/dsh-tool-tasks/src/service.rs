//! Installing the tools, and taking them away again.

use std::sync::Arc;

use dsh_scope::{CloseError, Scope};
use dsh_system_prompt::PromptRegistry;
use dsh_tasks::TaskRegistry;
use dsh_tools::{Tool, ToolRegistry};

use crate::config::ToolTasksConfig;
use crate::control::Control;
use crate::error::InstallError;
use crate::kill::KillTool;
use crate::list::ListTool;
use crate::output::OutputTool;
use crate::{guidance, notice};

/// The name of the scope, and of the control surface.
const NAME: &str = "tool-tasks";

/// What the tools need.
#[derive(Clone)]
pub struct Deps {
    /// Where the tools are offered.
    pub tools: ToolRegistry,
    /// Where the guidance is put.
    pub prompts: PromptRegistry,
    /// The tasks they control.
    pub tasks: TaskRegistry,
}

/// The installed tools. Dropping it leaves them installed for as long as the scope they were installed on.
pub struct Handle {
    scope: Scope,
}

impl Handle {
    /// Takes the tools, the guidance, the notices and the control surface away. No task is touched, and a second
    /// [`install`] is legal at once.
    ///
    /// # Errors
    /// See [`Scope::close`].
    ///
    /// # Cancel safety
    /// The removal goes on when this future is dropped.
    pub async fn uninstall(&self) -> Result<(), CloseError> {
        self.scope.close().await
    }
}

/// Installs the three tools, their guidance and the notices on `scope`, and attaches the control surface last:
/// tasks can be started only once they can be read and stopped.
///
/// # Errors
/// An [`InstallError`]; whatever was registered before it is taken away again in the background.
///
/// # Panics
/// Outside a tokio runtime.
pub fn install(scope: &Scope, deps: Deps, config: ToolTasksConfig) -> Result<Handle, InstallError> {
    config.validate()?;
    let own = scope.child(NAME).map_err(|_| InstallError::closed(scope))?;
    match register(&own, deps, config) {
        Ok(()) => Ok(Handle { scope: own }),
        Err(error) => {
            // A closing parent refuses the spawn, and closes the child itself.
            let _ = scope.spawn("tool-tasks rollback", async move {
                if let Err(error) = own.close().await {
                    tracing::error!("tool-tasks: {error}");
                }
            });
            Err(error)
        }
    }
}

fn register(scope: &Scope, deps: Deps, config: ToolTasksConfig) -> Result<(), InstallError> {
    let Deps {
        tools,
        prompts,
        tasks,
    } = deps;
    let vocabulary = tasks.vocabulary();
    let serves = config.serves.clone();
    prompts.section(scope, guidance::section(vocabulary))?;
    let control = Arc::new(Control {
        tasks: tasks.clone(),
        config,
    });
    let own: [Arc<dyn Tool>; 3] = [
        Arc::new(OutputTool::new(Arc::clone(&control))),
        Arc::new(ListTool::new(Arc::clone(&control))),
        Arc::new(KillTool::new(control)),
    ];
    for tool in own {
        tools.register(scope, tool)?;
    }
    tasks
        .on_done(scope, serves.clone(), move |done| {
            notice::on_done(vocabulary, done);
            Box::pin(async { Ok(()) })
        })
        .map_err(|_| InstallError::closed(scope))?;
    tasks
        .attach_surface(scope, NAME, serves)
        .map_err(|_| InstallError::closed(scope))?;
    Ok(())
}
