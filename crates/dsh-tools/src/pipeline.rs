//! What happens around a tool's body, in this order: arguments parsed, limit asked, abort looked at, policies asked, body
//! run with its panics contained and its time limited, abort looked at again, result reviewed, limit applied.
//!
//! **Invariants**
//! 1. Every call ends in exactly one [`ToolResult`].
//! 2. A body that was entered is awaited to its end, also after an abort; only one that is told that its time is over and
//!    does not end is dropped.
//! 3. A result that the pipeline replaces takes its deliveries with it: they are dropped, thus abandoned.
//! 4. The limit comes last, so nothing can exceed it, whoever wrote the result.
//! 5. Policies only make things stricter: the first that denies ends the matter.
//! 6. A call that is given up waits for nobody who decides about it.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use dsh_llm::ContentBlock;
use dsh_scope::{contain, contain_future, within};
use serde_json::Value;

use crate::args::parse_arguments;
use crate::error::{TOOL_ABORTED, ToolError};
use crate::limit::bounded_result;
use crate::policy::{Approval, Approver, CallPolicy, PendingCall, Review, Verdict};
use crate::result::ToolResult;
use crate::tool::{Tool, ToolContext};

/// How long a body has to end after its time was over.
const TIMEOUT_GRACE: Duration = Duration::from_secs(1);

/// Who decides about a call.
pub(crate) struct Deciders {
    pub(crate) policies: Vec<Arc<dyn CallPolicy>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
}

pub(crate) async fn run(
    name: &str,
    tool: &dyn Tool,
    args: Value,
    ctx: ToolContext,
    deciders: &Deciders,
) -> ToolResult {
    let args = parse_arguments(args);
    let limit = limit_of(name, tool, &args, &ctx);
    let result = guarded(name, tool, args, ctx, deciders).await;
    match limit {
        Some(max_bytes) => bounded(result, max_bytes),
        None => result,
    }
}

/// The body and everything that may decide about it. What refuses a call goes before the body, what judges a
/// result goes after it; both end inside the limit.
async fn guarded(
    name: &str,
    tool: &dyn Tool,
    args: Value,
    ctx: ToolContext,
    deciders: &Deciders,
) -> ToolResult {
    if ctx.token.is_cancelled() {
        return ToolError::aborted_before_dispatch().into();
    }
    let token = ctx.token.clone();
    let call = PendingCall {
        tool: name.to_owned(),
        args: args.clone(),
        caller: ctx.caller.clone(),
        call_id: ctx.call_id.clone(),
    };
    let asked = tokio::select! {
        biased;
        () = token.cancelled() => return ToolError::aborted_before_dispatch().into(),
        asked = contain_future(deciders.refusal(&call)) => asked,
    };
    let refusal = match asked {
        Ok(refusal) => refusal,
        Err(panicked) => {
            tracing::error!("tools: a policy panicked over {name}: {panicked}");
            return ToolError::policy_panicked(name, &panicked).into();
        }
    };
    let result = match refusal {
        Some(refusal) => refusal.into(),
        None => timed(name, tool, args, ctx).await,
    };
    if token.is_cancelled() && says_what_was_done(&result) {
        // Policies may judge that, too, but are not waited for.
        return tokio::select! {
            biased;
            reviewed = deciders.review(&call, result) => reviewed,
            () = ready(()) => ToolError::aborted().into(),
        };
    }
    tokio::select! {
        biased;
        () = token.cancelled() => ToolError::aborted().into(),
        reviewed = deciders.review(&call, result) => reviewed,
    }
}

/// Whether it is what a body says of its own abort.
fn says_what_was_done(result: &ToolResult) -> bool {
    result.error.is_some_and(|error| error.code == TOOL_ABORTED)
}

impl Deciders {
    /// Why the call may not run, if it may not.
    async fn refusal(&self, call: &PendingCall) -> Option<ToolError> {
        let mut ask = false;
        for policy in &self.policies {
            match policy.before(call).await {
                Verdict::Allow => {}
                Verdict::Ask => ask = true,
                Verdict::Deny { reason } => return Some(ToolError::new(reason)),
            }
        }
        if !ask {
            return None;
        }
        let Some(approver) = &self.approver else {
            return Some(ToolError::nobody_to_ask(&call.tool));
        };
        match approver.ask(call).await {
            Approval::Allowed => None,
            Approval::Denied => Some(ToolError::denied(&call.tool)),
            Approval::Unanswered => Some(ToolError::nobody_to_ask(&call.tool)),
        }
    }

    async fn review(&self, call: &PendingCall, mut result: ToolResult) -> ToolResult {
        for policy in &self.policies {
            let review = contain_future(policy.after(call, &result)).await;
            result = match review {
                Ok(Review::Accept) => result,
                Ok(Review::Replace(content)) => ToolResult { content, ..result },
                Ok(Review::Block { feedback }) => ToolError::new(feedback).into(),
                Err(panicked) => {
                    let name = &call.tool;
                    tracing::error!("tools: a policy panicked over the result of {name}: {panicked}");
                    ToolError::policy_panicked(name, &panicked).into()
                }
            };
        }
        result
    }
}

/// The body, within its time.
async fn timed(name: &str, tool: &dyn Tool, args: Value, mut ctx: ToolContext) -> ToolResult {
    let limit = contain(|| tool.timeout(&args)).unwrap_or_else(|panicked| {
        tracing::error!("tools: the timeout of {name} panicked: {panicked}");
        None
    });
    let Some(limit) = limit else {
        return body(name, tool, args, ctx).await;
    };
    let token = ctx.token.child_token();
    ctx.token = token.clone();
    let mut running = Box::pin(body(name, tool, args, ctx));
    match within(limit, &mut running).await {
        Some(result) => result,
        None => {
            token.cancel();
            if within(TIMEOUT_GRACE, &mut running).await.is_none() {
                tracing::warn!("tools: {name} did not end when its time was over; it is dropped");
            }
            ToolError::timed_out(name, limit).into()
        }
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
