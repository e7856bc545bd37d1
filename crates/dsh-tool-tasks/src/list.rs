//! `task_list`: what the caller has running, and what has ended.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_tasks::TaskSnapshot;
use dsh_tools::{
    Annotations, CallCard, CardKind, Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
    decode, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::control::Control;
use crate::value;

pub(crate) struct ListTool {
    control: Arc<Control>,
    schema: Value,
}

#[derive(Deserialize, JsonSchema)]
struct ListArgs {}

impl ListTool {
    pub(crate) fn new(control: Arc<Control>) -> ListTool {
        ListTool {
            control,
            schema: schema_of::<ListArgs>(),
        }
    }
}

#[async_trait]
impl Tool for ListTool {
    fn definition(&self) -> ToolDefinition {
        let word = self.control.vocabulary().word();
        ToolDefinition {
            name: self.control.vocabulary().list_tool().to_owned(),
            description: format!("List your background {word}s, running and ended: id, kind, status, label."),
            input_schema: self.schema.clone(),
            annotations: Annotations {
                title: Some(format!("List background {word}s")),
                read_only: Some(true),
                open_world: Some(false),
                ..Annotations::default()
            },
        }
    }

    fn concurrency(&self, _args: &Value) -> Concurrency {
        Concurrency::Parallel
    }

    fn present_call(&self, _args: &Value) -> Option<CallCard> {
        Some(CallCard::Generic {
            title: format!("List background {}s", self.control.vocabulary().word()),
            kind: CardKind::Read,
            raw_input: None,
            content: Vec::new(),
        })
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let ListArgs {} = decode(&self.schema, &args)?;
        let tasks = self.control.tasks.list(ctx.caller.as_ref());
        let text = if tasks.is_empty() {
            self.control.vocabulary().empty_list()
        } else {
            tasks
                .iter()
                .map(TaskSnapshot::list_line)
                .collect::<Vec<_>>()
                .join("\n")
        };
        Ok(ToolOutput::text(text).value(tasks.iter().map(value::public).collect()))
    }
}
