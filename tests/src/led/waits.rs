//! A tool that lets a scenario wait for what it is about.

use async_trait::async_trait;
use dsh_testkit::eventually;
use dsh_tools::{Annotations, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput};
use serde_json::{Value, json};

/// `await_notices` returns when so many notices wait for the agent that calls it.
pub(super) struct Waits;

#[async_trait]
impl Tool for Waits {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "await_notices".to_owned(),
            description: "For tests: returns when so many notices wait.".to_owned(),
            input_schema: json!({"type": "object", "properties": {"count": {"type": "integer"}}}),
            annotations: Annotations::default(),
        }
    }

    async fn call(&self, args: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        let agent = ctx.caller.ok_or_else(|| ToolError::new("nobody calls"))?;
        let count = args["count"].as_u64().unwrap_or(1);
        let here = || agent.inbox().pending() as u64 >= count;
        eventually(&format!("{count} notices"), here).await;
        Ok(ToolOutput::text(format!("{count} waiting")))
    }
}
