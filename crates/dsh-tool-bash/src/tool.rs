//! The `bash` tool.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_bash::{BashExecutor, BashRequest, BashSpec, checked};
use dsh_output::Rendering;
use dsh_tasks::{StartError, StartSpec, TaskId, TaskRegistry, Vocabulary};
use dsh_tools::{
    Annotations, CallCard, ResultCard, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput, ToolResult,
};
use serde_json::{Value, json};

use crate::args::{BashArgs, schema};
use crate::config::{Leftover, OutputLayout, ToolBashConfig};
use crate::kept::KeptOutputs;
use crate::service::Background;
use crate::stall::Stall;
use crate::unheard::end_if_unheard;
use crate::work::{KIND, work};
use crate::{card, prompt};

pub(crate) const NAME: &str = "bash";

/// The tool: decides where a call goes.
pub(crate) struct BashTool {
    pub(crate) bash: Arc<dyn BashExecutor>,
    pub(crate) background: Background,
    pub(crate) config: ToolBashConfig,
    /// Absolute.
    pub(crate) dsh_home: Option<PathBuf>,
    pub(crate) kept: KeptOutputs,
}

#[async_trait]
impl Tool for BashTool {
    fn definition(&self) -> ToolDefinition {
        let offered = self
            .background
            .tasks()
            .filter(|_| self.config.enable_run_in_background);
        ToolDefinition {
            name: NAME.to_owned(),
            description: prompt::description(offered.map(TaskRegistry::vocabulary), self.leftover_setting()),
            input_schema: schema(offered.is_some()),
            annotations: Annotations {
                read_only: Some(false),
                destructive: Some(true),
                open_world: Some(true),
                ..Annotations::default()
            },
        }
    }

    fn present_call(&self, args: &Value) -> Option<CallCard> {
        card::call(args)
    }

    fn present_result(&self, args: &Value, result: &ToolResult) -> Option<ResultCard> {
        card::result(args, result)
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let args = BashArgs::parse(&args)?;
        let request = self.request(&args, ctx.caller.as_ref());
        if args.in_background() {
            self.background(request, &ctx).await
        } else {
            self.foreground(request, &ctx).await
        }
    }
}

impl BashTool {
    /// Builds the request from what the tool knows by name; whatever else a model said does not get in.
    fn request(&self, args: &BashArgs, caller: Option<&Arc<Agent>>) -> BashRequest {
        let session = caller.and_then(|agent| agent.cwd());
        let workdir = match (&args.workdir, session) {
            // Joining an absolute path yields that path.
            (Some(workdir), Some(session)) => Some(session.join(workdir)),
            (Some(workdir), None) => Some(PathBuf::from(workdir)),
            (None, session) => session.map(PathBuf::from),
        };
        BashRequest {
            workdir,
            timeout_ms: args.timeout_ms,
            dsh_env: self.managed_env(caller),
            ..BashRequest::new(&args.command)
        }
    }

    /// What the harness tells every command about itself.
    fn managed_env(&self, caller: Option<&Arc<Agent>>) -> BTreeMap<String, String> {
        let mut env = BTreeMap::from([("DSH_SHELL".to_owned(), "1".to_owned())]);
        if let Some(agent) = caller {
            env.insert("DSH_SESSION_ID".to_owned(), agent.id().to_string());
        }
        if let Some(home) = &self.dsh_home {
            env.insert("DSH_HOME".to_owned(), home.to_string_lossy().into_owned());
        }
        env
    }

    pub(crate) fn resolve(&self, request: BashRequest) -> Result<BashSpec, ToolError> {
        self.bash.resolve(request).map_err(refused)
    }

    async fn background(&self, request: BashRequest, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let tasks = self.tasks_for_background()?;
        if ctx.token.is_cancelled() {
            return Err(ToolError::new("command aborted"));
        }
        let spec = self.resolve(request)?;
        checked(&*self.bash, &spec, &ctx.token).await.map_err(refused)?;
        let (bash, rendering) = (Arc::clone(&self.bash), self.rendering());
        let label = spec.command.clone();
        let stall = self.stall(tasks, ctx);
        let watch = stall.clone();
        // Started inside the reservation: a refused task has started nothing.
        let start = StartSpec::new(KIND, label, move || {
            let process = bash.start(&spec)?;
            let output = process.output().reader(rendering);
            Ok(work(process, spec.deadline, output, 0, watch))
        });
        let id = start_for(ctx, tasks, start, stall.as_deref()).map_err(refused)?;
        let words = tasks.vocabulary();
        let value = json!({ "kind": "background", format!("{}Id", words.word()): id.to_string() });
        let unheard = end_if_unheard(tasks, &id, ctx.caller.as_ref());
        Ok(ToolOutput::text(words.started(&id))
            .value(value)
            .delivers(unheard))
    }

    /// Where a background command goes; why it cannot, before anything was looked at.
    fn tasks_for_background(&self) -> Result<&TaskRegistry, ToolError> {
        let off = |setting| {
            let text = format!("run_in_background is disabled for this deployment ({setting})");
            Err(ToolError::new(text))
        };
        match &self.background {
            _ if !self.config.enable_run_in_background => off("enableRunInBackground: false"),
            Background::Tasks(tasks) => Ok(tasks),
            Background::Off { setting } => off(setting),
            Background::NoRegistry => Err(ToolError::new(Vocabulary::default().registry_missing())),
        }
    }

    /// What really happens to what a command leaves running.
    pub(crate) fn leftover_setting(&self) -> Leftover {
        match self.config.leftover() {
            Leftover::Adopt if self.background.tasks().is_none() => Leftover::End,
            setting => setting,
        }
    }

    /// Who tells the caller of the silences of a task; nobody unless that is configured.
    pub(crate) fn stall(&self, tasks: &TaskRegistry, ctx: &ToolContext) -> Option<Arc<Stall>> {
        let (after, owner) = (self.config.stall_notice_ms?, ctx.caller.as_ref()?);
        Some(Stall::new(after, tasks, owner))
    }

    pub(crate) fn rendering(&self) -> Rendering {
        match self.config.rendering {
            OutputLayout::Sections => Rendering::Sections,
            OutputLayout::Interleaved => Rendering::Interleaved,
        }
    }
}

/// Starts a task of the caller, if there is one; `stall` learns which.
pub(crate) fn start_for(
    ctx: &ToolContext,
    tasks: &TaskRegistry,
    start: StartSpec,
    stall: Option<&Stall>,
) -> Result<TaskId, StartError> {
    let start = match &ctx.caller {
        Some(agent) => start.owned_by(Arc::clone(agent)),
        None => start,
    };
    let id = tasks.start(start)?;
    if let Some(stall) = stall {
        stall.is_of(&id);
    }
    Ok(id)
}

pub(crate) fn refused(error: impl std::fmt::Display) -> ToolError {
    ToolError::new(error.to_string())
}
