//! A child as the work of a background task.

use std::sync::Arc;

use dsh_subagent::{RunResult, StartError, StartRequest, StopReason, SubagentRegistry};
use dsh_tasks::{CancelRequest, Outcome, Work};
use dsh_tools::bounded_result;

use crate::finished::{Finished, finished};
use crate::tool::MAX_SHOWN_BYTES;

/// The kind of every task of this tool.
pub(crate) const KIND: &str = "subagent";

/// Why a child is ended when nobody says why.
const KILLED: &str = "background subagent task killed";

/// Starts the child when the task is awaited, and ends with its release. A kill of the task cancels the start and the run.
pub(crate) fn work(subagents: SubagentRegistry, provider: String, request: StartRequest) -> Work {
    let token = request.token.clone();
    let cancel = move |asked: &CancelRequest| {
        let reason = asked.reason.as_deref().unwrap_or(KILLED);
        tracing::debug!("subagent task is cancelled: {reason}");
        token.cancel();
        Ok(())
    };
    let done = async move {
        let (token, parent) = (request.token.clone(), Arc::clone(&request.parent));
        match subagents.start(&provider, request).await {
            // The parent's end cancels a start by itself, maybe before the task is told to end.
            Err(error) => not_started(&error, token.is_cancelled() || parent.scope().is_closing()),
            Ok(run) => outcome(finished(run).await),
        }
    };
    Work::new(done, cancel)
}

/// The end of a task whose child was not published. What could not be taken down again is no clean kill, whoever asked.
fn not_started(error: &StartError, asked: bool) -> Outcome {
    match error {
        StartError::Provider(failure) if failure.rollback().is_some() => {
            Outcome::failed().detail(format!("AggregateError: {error}"))
        }
        _ if asked => Outcome::killed(),
        _ => Outcome::failed().detail(format!("Error: {error}")),
    }
}

/// The end of a task whose child was published and released.
pub(crate) fn outcome(Finished { result, disposed }: Finished) -> Outcome {
    let (outcome, failure) = match result {
        Ok(result) => of_result(result),
        Err(fault) => (Outcome::failed(), Some(format!("Error: {fault}"))),
    };
    let (outcome, undisposed) = match disposed {
        Ok(()) => (outcome, None),
        Err(fault) => (Outcome::failed(), Some(format!("dispose failed: Error: {fault}"))),
    };
    let detail: Vec<String> = [failure, undisposed].into_iter().flatten().collect();
    if detail.is_empty() {
        outcome
    } else {
        outcome.detail(detail.join("; "))
    }
}

fn of_result(result: RunResult) -> (Outcome, Option<String>) {
    let text = bounded_result(&result.text(), MAX_SHOWN_BYTES);
    match &result.stop {
        StopReason::Completed => (Outcome::completed().output(text), None),
        StopReason::Aborted => (Outcome::killed(), None),
        StopReason::Error | StopReason::MaxTokens | StopReason::Refusal | StopReason::Other(_) => {
            let detail = match &result.diagnostic {
                Some(diagnostic) => format!("{}; diagnostic: {diagnostic}", result.stop),
                None => result.stop.to_string(),
            };
            (Outcome::failed().output(text), Some(detail))
        }
    }
}
