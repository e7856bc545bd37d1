//! The tool: decides where a call goes.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_subagent::{ProviderInfo, StartRequest, SubagentRegistry};
use dsh_tasks::{StartSpec, TaskRegistry, Vocabulary};
use dsh_tools::{
    Annotations, CallCard, Concurrency, Delivery, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::{DelegationArgs, schema};
use crate::background::{KIND, work};
use crate::config::ToolSubagentConfig;
use crate::{card, foreground, wording};

/// The most bytes that a model is shown of an answer: as many as of the output of a task at a time, by default.
pub(crate) const MAX_SHOWN_BYTES: usize = 64_000;

/// What a tool does, whoever its provider is at the moment.
pub(crate) struct Delegation {
    pub(crate) subagents: SubagentRegistry,
    pub(crate) tasks: Option<TaskRegistry>,
    pub(crate) config: ToolSubagentConfig,
}

/// The tool as long as its provider is what it is.
pub(crate) struct SubagentTool {
    delegation: Arc<Delegation>,
    provider: ProviderInfo,
}

impl SubagentTool {
    pub(crate) fn new(delegation: Arc<Delegation>, provider: ProviderInfo) -> Self {
        Self { delegation, provider }
    }
}

#[async_trait]
impl Tool for SubagentTool {
    fn definition(&self) -> ToolDefinition {
        let background = self.delegation.offered();
        let text = background.map(wording::run_in_background);
        ToolDefinition {
            name: self.delegation.config.tool_name.clone(),
            description: wording::description(&self.provider, background),
            input_schema: schema(wording::prompt(self.provider.context), text.as_deref()),
            annotations: Annotations {
                read_only: Some(false),
                destructive: Some(true),
                open_world: Some(true),
                ..Annotations::default()
            },
        }
    }

    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Parallel
    }

    fn result_limit(&self, _args: &Value, _caller: Option<&Arc<Agent>>) -> Option<usize> {
        Some(MAX_SHOWN_BYTES)
    }

    fn present_call(&self, args: &Value) -> Option<CallCard> {
        card::call(&self.delegation.config.tool_name, args)
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let args = DelegationArgs::parse(&args)?;
        let Some(caller) = &ctx.caller else {
            return Err(ToolError::new(
                "subagent tool requires a calling agent (exec.agent was undefined)",
            ));
        };
        if args.in_background() {
            self.delegation.background(args, caller)
        } else {
            self.delegation.foreground(args, caller, ctx.token).await
        }
    }
}

impl Delegation {
    /// How background work is called here, if it is offered.
    fn offered(&self) -> Option<Vocabulary> {
        let tasks = self
            .tasks
            .as_ref()
            .filter(|_| self.config.enable_run_in_background)?;
        Some(tasks.vocabulary())
    }

    async fn foreground(
        &self,
        args: DelegationArgs,
        caller: &Arc<Agent>,
        token: CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let request = self.request(args, caller, token);
        foreground::run(&self.subagents, &self.config.provider, request).await
    }

    fn background(&self, args: DelegationArgs, caller: &Arc<Agent>) -> Result<ToolOutput, ToolError> {
        if !self.config.enable_run_in_background {
            return Err(ToolError::new(
                "run_in_background is disabled for this tool instance (enable_run_in_background: false)",
            ));
        }
        let Some(tasks) = &self.tasks else {
            return Err(ToolError::new(Vocabulary::default().registry_missing()));
        };
        let label = args.description.clone();
        // The call may be over, or given up, long before the child is done: its token is none of the task's.
        let request = self.request(args, caller, CancellationToken::new());
        let (subagents, provider) = (self.subagents.clone(), self.config.provider.clone());
        // Begun inside the reservation: a refused task has started nothing.
        let start = StartSpec::new(KIND, label, move || Ok(work(subagents, provider, request)))
            .owned_by(Arc::clone(caller));
        let id = tasks
            .start(start)
            .map_err(|refused| ToolError::new(refused.to_string()))?;
        let word = tasks.vocabulary().word();
        let value = json!({ "kind": "background", format!("{word}Id"): id.to_string() });
        let claim = tasks.claim_start(&id, Some(caller));
        Ok(
            ToolOutput::text(format!("started background subagent {word} {id}"))
                .value(value)
                .delivers(Delivery::new(move || claim.deliver())),
        )
    }

    fn request(&self, args: DelegationArgs, caller: &Arc<Agent>, token: CancellationToken) -> StartRequest {
        StartRequest {
            model: self.config.model(),
            max_depth: self.config.max_depth.limit(),
            tool_filter: self.config.filter(),
            persona: self.config.persona.clone(),
            label: Some(args.description),
            ..StartRequest::new(args.prompt, Arc::clone(caller), token)
        }
    }
}
