//! `task_list`: what the caller has running, and what has ended.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_session::SessionId;
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

/// How many ended tasks a list shows: those that ended last. What is live is always shown.
const MAX_LISTED_ENDED: usize = 50;

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
        let mut tasks = self.control.tasks.list_all(ctx.caller.as_ref());
        let left_out = leave_out_older_ends(&mut tasks);
        let vocabulary = self.control.vocabulary();
        let caller = ctx.caller.as_deref().map(Agent::id);
        let mut lines: Vec<_> = tasks.iter().map(|task| row(task, caller)).collect();
        if lines.is_empty() {
            lines.push(vocabulary.empty_list());
        }
        if left_out > 0 {
            lines.push(vocabulary.older_ended_not_shown(left_out));
        }
        Ok(ToolOutput::text(lines.join("\n"))
            .value(tasks.iter().map(|task| value::public(task, caller)).collect()))
    }
}

/// The row of a task in the list of a caller: one of somebody who works for the caller says whose it is.
pub(crate) fn row(task: &TaskSnapshot, caller: Option<&SessionId>) -> String {
    let row = task.list_line();
    match &task.owner {
        Some(owner) if Some(owner) != caller => format!("{row} (subagent {owner})"),
        Some(_) | None => row,
    }
}

/// Keeps what is live and what ended last, and says how many others there were.
fn leave_out_older_ends(tasks: &mut Vec<TaskSnapshot>) -> usize {
    let ends = tasks.iter().enumerate();
    let mut ends: Vec<_> = ends
        .filter_map(|(at, task)| Some((task.finished_at?, at)))
        .collect();
    // Of two that ended in the same millisecond the one that was registered later is the newer.
    ends.sort_unstable();
    let older = ends.len().saturating_sub(MAX_LISTED_ENDED);
    let older: HashSet<usize> = ends.drain(..older).map(|(_, at)| at).collect();
    let mut at = 0..;
    tasks.retain(|_| at.next().is_none_or(|at| !older.contains(&at)));
    older.len()
}
