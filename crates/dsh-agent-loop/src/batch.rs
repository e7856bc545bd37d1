//! The tool calls of one answer.
//!
//! **Invariants**
//!
//! 1. Every call gets exactly one `tool/result`, and the results are logged in the order in which the model made the
//!    calls, each as soon as those before it are.
//! 2. A call whose tool does not say that it may overlap runs alone: those before it have ended, those behind it wait.
//!    That is asked right before it starts.
//! 3. Once the turn has to stop no call starts. Those that run are awaited: their results say that they were aborted.

use std::collections::BTreeMap;

use dsh_agent::Turn;
use dsh_llm::{ContentBlock, ToolCall};
use dsh_session::{ErrorInfo, EventData};
use dsh_tools::{Concurrency, ToolContext, ToolResult};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::Value;

use crate::turn::{Broken, Worker};

/// Told for a call that did not start.
const SKIPPED: &str = "Error: tool call skipped because the step was aborted before execution";

/// The results that wait for those before them.
struct Results<'a> {
    worker: &'a Worker,
    calls: &'a [ToolCall],
    waiting: BTreeMap<usize, ToolResult>,
    next: usize,
}

impl Worker {
    /// Runs the calls and logs their results.
    pub(crate) async fn batch(&self, turn: &Turn<'_>, calls: Vec<ToolCall>) -> Result<(), Broken> {
        let mut results = Results {
            worker: self,
            calls: &calls,
            waiting: BTreeMap::new(),
            next: 0,
        };
        let mut running = FuturesUnordered::new();
        let mut alone = false;
        for (index, call) in calls.iter().enumerate() {
            let limit = self.config.max_parallel_tool_calls.get();
            let exclusive = self.concurrency(call) == Concurrency::Exclusive;
            while !running.is_empty() && (alone || exclusive || running.len() >= limit) {
                if let Some((index, result)) = running.next().await {
                    results.add(index, result).await?;
                }
            }
            alone = exclusive;
            self.log_call(call)?;
            if turn.token().is_cancelled() {
                results.add(index, skipped()).await?;
                continue;
            }
            running.push(async move { (index, self.call(turn, call).await) });
        }
        while let Some((index, result)) = running.next().await {
            results.add(index, result).await?;
        }
        Ok(())
    }

    fn concurrency(&self, call: &ToolCall) -> Concurrency {
        self.deps
            .tools
            .concurrency(&self.agent, &call.name, &arguments(call))
    }

    async fn call(&self, turn: &Turn<'_>, call: &ToolCall) -> ToolResult {
        let context = ToolContext {
            caller: Some(self.agent.clone()),
            token: turn.token().child_token(),
            call_id: call.id.clone(),
        };
        self.deps
            .tools
            .execute(&call.name, arguments(call), context)
            .await
    }

    fn log_call(&self, call: &ToolCall) -> Result<(), Broken> {
        self.log(EventData::ToolCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        })
        .map(drop)
    }

    fn log_result(&self, call: &ToolCall, result: ToolResult) -> Result<(), Broken> {
        let error = result.error.map(|error| ErrorInfo {
            name: error.name.to_owned(),
            code: error.code.to_owned(),
        });
        self.log(EventData::ToolResult {
            call_id: call.id.clone(),
            content: result.content,
            is_error: result.is_error,
            error,
            value: result.value,
        })?;
        // The model has it: it is in the log.
        result.deliveries.deliver_all();
        Ok(())
    }
}

impl Results<'_> {
    async fn add(&mut self, index: usize, result: ToolResult) -> Result<(), Broken> {
        self.waiting.insert(index, result);
        let before = self.next;
        while let Some(result) = self.waiting.remove(&self.next)
            && let Some(call) = self.calls.get(self.next)
        {
            self.worker.log_result(call, result)?;
            self.next += 1;
        }
        if self.next > before {
            self.worker.flush().await?;
        }
        Ok(())
    }
}

/// As the model wrote them: what is no JSON is refused by the tool's own check.
fn arguments(call: &ToolCall) -> Value {
    Value::String(call.arguments.clone())
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
