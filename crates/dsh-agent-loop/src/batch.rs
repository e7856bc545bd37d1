//! The tool calls of one answer.
//!
//! **Invariants**
//!
//! 1. Every call gets exactly one `tool/result`, and the results are logged in the order in which the model made the
//!    calls, each as soon as those before it are.
//! 2. A call whose tool does not say that it may overlap runs alone: those before it have ended, those behind it wait.
//!    That is asked right before it starts.
//! 3. Once the turn has to stop, or the log could not be written, no call starts. Those that run are awaited, each for a
//!    bounded time, and dropped after it: their results say that they were aborted.

use std::collections::BTreeMap;
use std::time::Duration;

use dsh_agent::Turn;
use dsh_llm::{ContentBlock, ToolCall};
use dsh_session::{AppendError, ErrorInfo, EventData};
use dsh_tools::{Concurrency, ToolContext, ToolError, ToolResult};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::turn::{Broken, Worker};

/// Told for a call that did not start.
const SKIPPED: &str = "Error: tool call skipped because the step was aborted before execution";

/// The results, as they become ready and as they are logged.
struct Results<'a> {
    worker: &'a Worker,
    calls: &'a [ToolCall],
    /// Those that wait for some before them.
    waiting: BTreeMap<usize, ToolResult>,
    next: usize,
    /// Cancelled with the turn, or when something is broken.
    stop: CancellationToken,
    broken: Option<Broken>,
}

impl Worker {
    /// Runs the calls of an answer that was logged, and logs their results.
    pub(crate) async fn batch(&self, turn: &Turn<'_>, calls: Vec<ToolCall>) -> Result<(), Broken> {
        let mut results = Results {
            worker: self,
            calls: &calls,
            waiting: BTreeMap::new(),
            next: 0,
            stop: turn.token().child_token(),
            broken: None,
        };
        results.note(self.flush().await);
        let limit = self.config.max_parallel_tool_calls.get();
        let mut running = FuturesUnordered::new();
        let mut alone = false;
        for (index, call) in calls.iter().enumerate() {
            // Asked again after each wait: a call that has ended may have changed what this one is.
            while !running.is_empty() && (alone || running.len() >= limit || self.is_exclusive(call)) {
                if let Some((index, result)) = running.next().await {
                    results.add(index, result).await;
                }
            }
            alone = self.is_exclusive(call);
            results.note(self.log_call(call));
            if results.stop.is_cancelled() {
                results.add(index, skipped()).await;
                continue;
            }
            let token = results.stop.child_token();
            running.push(async move { (index, self.call(token, call).await) });
        }
        while let Some((index, result)) = running.next().await {
            results.add(index, result).await;
        }
        results.broken.map_or(Ok(()), Err)
    }

    fn is_exclusive(&self, call: &ToolCall) -> bool {
        let tools = &self.deps.tools;
        tools.concurrency(&self.agent, &call.name, &arguments(call)) == Concurrency::Exclusive
    }

    async fn call(&self, token: CancellationToken, call: &ToolCall) -> ToolResult {
        let context = ToolContext {
            caller: Some(self.agent.clone()),
            token: token.clone(),
            call_id: call.id.clone(),
        };
        let patience = self.config.dispose_timeout;
        let too_late = async {
            token.cancelled().await;
            tokio::time::sleep(patience).await;
        };
        tokio::select! {
            biased;
            result = self.deps.tools.execute(&call.name, arguments(call), context) => result,
            () = too_late => {
                let (agent, tool) = (self.agent.id(), &call.name);
                tracing::warn!(%agent, "gave up on a call of {tool} that did not end within {patience:?} of being told to");
                given_up(patience)
            }
        }
    }

    fn log_call(&self, call: &ToolCall) -> Result<(), Broken> {
        self.log(EventData::ToolCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        })
        .map(drop)
    }

    /// Logs a result. A value that the log cannot hold is left out: it is for programs, the model does not see it.
    fn log_result(&self, call: &ToolCall, result: ToolResult) -> Result<(), Broken> {
        let error = result.error.map(|error| ErrorInfo {
            name: error.name.to_owned(),
            code: error.code.to_owned(),
        });
        let with = |value| EventData::ToolResult {
            call_id: call.id.clone(),
            content: result.content.clone(),
            is_error: result.is_error,
            error: error.clone(),
            value,
        };
        let session = self.agent.session();
        match session.append(with(result.value)) {
            Err(refused @ AppendError::NotLossless { .. }) => {
                tracing::warn!(agent = %self.agent.id(), tool = %call.name, "logged without its value: {refused}");
                session.append(with(None))?
            }
            logged => logged?,
        };
        // The model has it: it is in the log.
        result.deliveries.deliver_all();
        Ok(())
    }
}

impl Results<'_> {
    async fn add(&mut self, index: usize, result: ToolResult) {
        self.waiting.insert(index, result);
        let before = self.next;
        while let Some(result) = self.waiting.remove(&self.next)
            && let Some(call) = self.calls.get(self.next)
        {
            self.note(self.worker.log_result(call, result));
            self.next += 1;
        }
        if self.next > before && self.broken.is_none() {
            self.note(self.worker.flush().await);
        }
    }

    /// The first thing that is broken ends the turn, but not before the calls that run have ended.
    fn note(&mut self, done: Result<(), Broken>) {
        if let Err(broken) = done {
            self.stop.cancel();
            self.broken.get_or_insert(broken);
        }
    }
}

/// As the model wrote them: what is no JSON is refused by the tool's own check.
fn arguments(call: &ToolCall) -> Value {
    Value::String(call.arguments.clone())
}

fn given_up(after: Duration) -> ToolResult {
    let after = after.as_millis();
    ToolError::new(format!(
        "tool call aborted: it did not end within {after}ms, and was given up"
    ))
    .with_info("AbortError", "TOOL_ABORTED")
    .into()
}

fn skipped() -> ToolResult {
    ToolResult {
        content: vec![ContentBlock::text(SKIPPED)],
        is_error: true,
        error: Some(dsh_tools::ErrorInfo {
            name: "AbortError",
            code: "ABORTED",
        }),
        value: None,
        deliveries: Vec::new().into(),
    }
}
