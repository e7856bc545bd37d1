//! `task_output`: reads a task, after waiting for its end if asked to.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_tasks::{TaskId, TaskRead};
use dsh_tools::{
    Annotations, CallCard, CardKind, Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
    decode,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::ToolTasksConfig;
use crate::control::{Control, delivery, limit_of, refused, schema};
use crate::{bounds, value};

pub(crate) const NO_NEW_OUTPUT: &str = "(no new output)";

pub(crate) struct OutputTool {
    control: Arc<Control>,
    schema: Value,
}

#[derive(Deserialize, JsonSchema)]
struct OutputArgs {
    /// The id you got at its start.
    #[serde(alias = "task_id", alias = "job_id")]
    id: String,
    /// Wait for its end; it runs on after a timeout.
    wait: Option<bool>,
    /// The longest wait, in milliseconds.
    timeout_ms: Option<f64>,
}

impl OutputTool {
    pub(crate) fn new(control: Arc<Control>) -> OutputTool {
        let schema = schema::<OutputArgs>(control.vocabulary());
        OutputTool { control, schema }
    }

    /// Waits, then reads. The claim of the wait lives until the read has its own: between the two the end is always
    /// claimed, so no notice can slip out.
    async fn read(&self, id: &TaskId, args: &OutputArgs, ctx: &ToolContext) -> Result<TaskRead, ToolError> {
        let (tasks, config) = (&self.control.tasks, &self.control.config);
        let caller = ctx.caller.as_ref();
        let timeout = config.wait_ms(args.timeout_ms);
        let _waited = match args.wait {
            Some(true) => Some(
                tasks
                    .wait(id, caller, timeout, &ctx.token)
                    .await
                    .map_err(refused)?,
            ),
            Some(false) | None => None,
        };
        tasks.read(id, caller, config.max_read_bytes).map_err(refused)
    }
}

#[async_trait]
impl Tool for OutputTool {
    fn definition(&self) -> ToolDefinition {
        let word = self.control.vocabulary().word();
        let ToolTasksConfig {
            wait_timeout_ms,
            max_wait_timeout_ms,
            ..
        } = self.control.config;
        ToolDefinition {
            name: self.control.vocabulary().output_tool().to_owned(),
            description: format!(
                "Read a background {word}: what it printed since the last read or, for a {word} that only has a \
                 result, that result once it is done. Returns at once; with wait only when the {word} has ended, \
                 or after timeout_ms (default {wait_timeout_ms}, at most {max_wait_timeout_ms}). The last line is \
                 always the status."
            ),
            input_schema: self.schema.clone(),
            annotations: Annotations {
                title: Some(format!("Read background {word} output")),
                read_only: Some(true),
                open_world: Some(false),
                ..Annotations::default()
            },
        }
    }

    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Parallel
    }

    fn present_call(&self, args: &Value) -> Option<CallCard> {
        Some(self.control.card("Read output from", CardKind::Read, args))
    }

    fn result_limit(&self, args: &Value, caller: Option<&Arc<Agent>>) -> Option<usize> {
        self.control.limit(args, caller)
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let args: OutputArgs = decode(&self.schema, &args)?;
        let id = self.control.id(&args.id)?;
        let TaskRead {
            text,
            snapshot,
            claim,
        } = self.read(&id, &args, &ctx).await?;
        let body = if text.is_empty() { NO_NEW_OUTPUT } else { &text };
        let reply = bounds::read(
            body,
            &snapshot.status_line(),
            limit_of(snapshot.output_limit_bytes),
        );
        let word = self.control.vocabulary().word();
        Ok(ToolOutput::text(reply)
            .value(
                json!({ "text": text, word: value::public(&snapshot, ctx.caller.as_deref().map(Agent::id)) }),
            )
            .delivers(delivery(claim)))
    }
}
