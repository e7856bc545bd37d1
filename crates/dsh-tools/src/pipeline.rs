//! What happens around a tool's body, in this order: arguments parsed, limit asked, abort looked at, body run
//! with its panics contained, abort looked at again, limit applied.
//!
//! **Invariants**
//! 1. Every call ends in exactly one [`ToolResult`].
//! 2. A body that was entered is awaited to its end, also after an abort.
//! 3. A result that the pipeline replaces takes its deliveries with it: they are dropped, thus abandoned.
//! 4. The limit comes last, so nothing can exceed it, whoever wrote the result.

use dsh_llm::ContentBlock;
use dsh_scope::{contain, contain_future};
use serde_json::Value;

use crate::args;
use crate::error::ToolError;
use crate::limit::bounded_result;
use crate::result::ToolResult;
use crate::tool::{Tool, ToolContext};

pub(crate) async fn run(name: &str, tool: &dyn Tool, args: Value, ctx: ToolContext) -> ToolResult {
    let args = args::parse(args);
    let limit = limit_of(name, tool, &args, &ctx);
    let result = guarded(name, tool, args, ctx).await;
    match limit {
        Some(max_bytes) => bounded(result, max_bytes),
        None => result,
    }
}

/// The body and everything that may decide about it. What refuses a call goes before the body, what judges a
/// result goes after it; both end inside the limit.
async fn guarded(name: &str, tool: &dyn Tool, args: Value, ctx: ToolContext) -> ToolResult {
    if ctx.token.is_cancelled() {
        return ToolError::aborted_before_dispatch().into();
    }
    let token = ctx.token.clone();
    let result = body(name, tool, args, ctx).await;
    if token.is_cancelled() {
        ToolError::aborted().into()
    } else {
        result
    }
}

async fn body(name: &str, tool: &dyn Tool, args: Value, ctx: ToolContext) -> ToolResult {
    match contain_future(async { tool.call(args, ctx).await }).await {
        Ok(Ok(output)) => output.into(),
        Ok(Err(error)) => error.into(),
        Err(panicked) => {
            tracing::error!("tools: {name} panicked: {panicked}");
            ToolError::panicked(name, &panicked).into()
        }
    }
}

fn limit_of(name: &str, tool: &dyn Tool, args: &Value, ctx: &ToolContext) -> Option<usize> {
    contain(|| tool.result_limit(args, ctx.caller.as_ref())).unwrap_or_else(|panicked| {
        tracing::error!("tools: the result limit of {name} panicked: {panicked}");
        None
    })
}

fn bounded(mut result: ToolResult, max_bytes: usize) -> ToolResult {
    if let Some(text) = result.single_text()
        && text.len() > max_bytes
    {
        result.content = vec![ContentBlock::text(bounded_result(text, max_bytes))];
    }
    result
}
