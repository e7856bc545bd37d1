//! `task_kill`: asks a task to end.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_tasks::{KillOutcome, Killed};
use dsh_tools::{
    Annotations, CallCard, CardKind, Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
    decode,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control::{Control, delivery, limit_of, refused, schema};
use crate::{bounds, value};

pub(crate) struct KillTool {
    control: Arc<Control>,
    schema: Value,
}

#[derive(Deserialize, JsonSchema)]
struct KillArgs {
    /// The id you got at its start.
    #[serde(alias = "task_id", alias = "job_id")]
    id: String,
    /// Why, in a few words; logged and passed on.
    reason: Option<String>,
}

impl KillTool {
    pub(crate) fn new(control: Arc<Control>) -> KillTool {
        let schema = schema::<KillArgs>(control.vocabulary());
        KillTool { control, schema }
    }
}

#[async_trait]
impl Tool for KillTool {
    fn definition(&self) -> ToolDefinition {
        let words = self.control.vocabulary();
        let (word, output) = (words.word(), words.output_tool());
        ToolDefinition {
            name: words.kill_tool().to_owned(),
            description: format!(
                "Ask a background {word} to stop. Returns at once, and its end is not announced to you: wait for it \
                 with {output} if it matters."
            ),
            input_schema: self.schema.clone(),
            annotations: Annotations {
                title: Some(format!("Kill background {word}")),
                read_only: Some(false),
                destructive: Some(true),
                open_world: Some(false),
                ..Annotations::default()
            },
        }
    }

    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Parallel
    }

    fn present_call(&self, args: &Value) -> Option<CallCard> {
        Some(self.control.card("Kill", CardKind::Execute, args))
    }

    fn result_limit(&self, args: &Value, caller: Option<&Arc<Agent>>) -> Option<usize> {
        self.control.limit(args, caller)
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let args: KillArgs = decode(&self.schema, &args)?;
        let id = self.control.id(&args.id)?;
        let vocabulary = self.control.vocabulary();
        let Killed {
            outcome,
            snapshot,
            claim,
        } = self
            .control
            .tasks
            .kill(&id, ctx.caller.as_ref(), args.reason.as_deref())
            .map_err(refused)?;
        let (text, outcome) = match outcome {
            KillOutcome::Requested => (vocabulary.kill_requested(&id), "cancellation-requested"),
            KillOutcome::AlreadyFinished => (vocabulary.already_finished(&snapshot), "already-finished"),
        };
        let reply = bounds::acknowledgement(&text, id.as_str(), limit_of(snapshot.output_limit_bytes));
        Ok(ToolOutput::text(reply)
            .value(json!({ "outcome": outcome, vocabulary.word(): value::public(&snapshot, ctx.caller.as_deref().map(Agent::id)) }))
            .delivers(delivery(claim)))
    }
}
