//! A call that waits for its child.

use dsh_subagent::{RunResult, StartRequest, StopReason, SubagentRegistry};
use dsh_tools::{ToolError, ToolOutput};
use serde_json::json;

use crate::finished::{Finished, finished};

/// Starts a child, awaits its result, and releases it before anything is told.
pub(crate) async fn run(
    subagents: &SubagentRegistry,
    provider: &str,
    request: StartRequest,
) -> Result<ToolOutput, ToolError> {
    let run = subagents
        .start(provider, request)
        .await
        .map_err(|error| ToolError::new(error.to_string()))?;
    let id = run.id().to_owned();
    let Finished { result, disposed } = finished(run).await;
    let answer = match result {
        Ok(result) => answer(&result),
        Err(fault) => Err(fault.to_string()),
    };
    match (answer, disposed) {
        (Ok(text), Ok(())) => {
            let value = json!({ "kind": "foreground", "runId": id, "output": text });
            Ok(ToolOutput::text(text).value(value))
        }
        (Err(failure), Ok(())) => Err(ToolError::new(failure)),
        (Ok(_), Err(fault)) => Err(ToolError::new(fault.to_string())),
        (Err(failure), Err(fault)) => Err(ToolError::new(format!(
            "subagent run failed: {failure}; dispose failed: {fault}"
        ))),
    }
}

/// The text of a success, or what is told of a failure: what it is, what the provider says of it, how far it came.
fn answer(result: &RunResult) -> Result<String, String> {
    let text = result.text();
    let headline = match &result.stop {
        StopReason::Completed => return Ok(text),
        StopReason::Aborted => "subagent run was cancelled".to_owned(),
        StopReason::Error => "subagent run failed".to_owned(),
        StopReason::MaxTokens => "subagent run hit its token limit before finishing".to_owned(),
        StopReason::Refusal => "subagent declined the task".to_owned(),
        StopReason::Other(reason) => format!("subagent run ended abnormally ({reason})"),
    };
    let diagnostic = result.diagnostic.as_ref();
    let diagnostic = diagnostic.map(|diagnostic| format!("\nDiagnostic: {diagnostic}"));
    let partial = (!text.is_empty()).then(|| format!("\nPartial output before the run ended:\n{text}"));
    Err([Some(headline), diagnostic, partial]
        .into_iter()
        .flatten()
        .collect())
}
