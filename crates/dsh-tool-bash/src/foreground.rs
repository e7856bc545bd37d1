//! A call that waits for its command, and what the command leaves behind.

use std::sync::Arc;

use dsh_bash::{BashProcess, BashRequest, BashSpec, Cut, End, EndReason, RunResult, ShellExit, run};
use dsh_output::{OutputSource, Rendering, StreamText};
use dsh_tasks::{StartSpec, TaskId, TaskRegistry};
use dsh_tools::{Delivery, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};

use crate::config::Leftover;
use crate::outcome::survived;
use crate::render::{Report, pipe_note, processes, sections};
use crate::tool::{BashTool, refused, start_for};
use crate::unheard::end_if_unheard;
use crate::work::{KIND, work};

impl BashTool {
    pub(crate) async fn foreground(
        &self,
        request: BashRequest,
        ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let spec = self.resolve(request)?;
        let mut result = run(&*self.bash, &spec, &ctx.token).await.map_err(refused)?;
        let timed_out = match result.cut {
            // A call that is cancelled now has nobody left to be told of what it leaves running.
            None if ctx.token.is_cancelled() => {
                end(&result.process).await;
                return Err(self.aborted(&spec, &result));
            }
            Some(Cut::Aborted) => return Err(self.aborted(&spec, &result)),
            Some(Cut::TimedOut) => Some(result.timeout),
            None => None,
        };
        let (mut notes, adopted) = self.leftover(&spec, &mut result, ctx).await;
        let body = self.body(&spec, &result);
        notes.extend(survived(result.survivors.clone()));
        notes.extend(result.limits_reached.iter().cloned());
        notes.extend(pipe_note(result.pipe));
        let text = Report {
            body,
            notes,
            timed_out,
            exit: &result.exit,
        }
        .text();
        let mut value = value(&result);
        if let ShellExit::Unseen { .. } = result.exit {
            // Nobody knows how it ended, so nobody may take it for a success; nothing of it was adopted.
            return Ok(ToolOutput::text(text).value(value).failed());
        }
        let Some(Adopted { id, word, unheard }) = adopted else {
            return Ok(ToolOutput::text(text).value(value));
        };
        value[format!("{word}Id")] = json!(id.as_str());
        Ok(ToolOutput::text(text).value(value).delivers(unheard))
    }

    /// What it had printed, within its budget. A file that the text points to is kept.
    fn body(&self, spec: &BashSpec, result: &RunResult) -> String {
        let body = match self.rendering() {
            Rendering::Sections => sections(&result.stdout.text, &result.stderr.text),
            Rendering::Interleaved => {
                let budget = spec.stdout_max_bytes.saturating_add(spec.stderr_max_bytes);
                let log = result.process.output().reader(Rendering::Interleaved);
                log.read_range(0, result.told, budget).text
            }
        };
        // Laying the text out may have started the file.
        self.kept.keep(result.process.output());
        body
    }

    /// What the model is told of a command that was given up: that, who survived it, and what it had printed.
    fn aborted(&self, spec: &BashSpec, result: &RunResult) -> ToolError {
        let printed = self.body(spec, result);
        let survived = survived(result.survivors.clone()).map(|note| format!("[{note}]"));
        let printed = (!printed.is_empty()).then(|| format!("[output until then]\n{printed}"));
        let said: Vec<String> = survived.into_iter().chain(printed).collect();
        match said.is_empty() {
            true => ToolError::new("command aborted"),
            false => ToolError::aborted_after(&said.join("\n")),
        }
    }

    /// Decides about the processes that the command left running, and says what became of them. What was adopted ends
    /// like a task of its own if nobody hears of it; what was ended is told with its last words.
    async fn leftover(
        &self,
        spec: &BashSpec,
        result: &mut RunResult,
        ctx: &ToolContext,
    ) -> (Vec<String>, Option<Adopted>) {
        if result.left.is_empty() {
            return (Vec::new(), None);
        }
        let count = processes(result.left.len());
        let keeper = self
            .background
            .tasks()
            .filter(|tasks| tasks.serves(ctx.caller.as_ref()));
        let adopted = match (self.leftover_setting(), keeper) {
            (Leftover::Leave, _) => return (vec![format!("{count} still running")], None),
            (Leftover::Adopt, Some(tasks)) => {
                let id = self.adopt(tasks, &spec.command, result, ctx);
                id.map(|id| (id, tasks))
            }
            (Leftover::Adopt, None) | (Leftover::End, _) => None,
        };
        let Some((id, tasks)) = adopted else {
            let end = end(&result.process).await;
            result.pipe = end.pipe;
            result.retell(spec);
            let note = survived(end.survivors).unwrap_or_else(|| format!("{count} left running, now ended"));
            let notes = std::iter::once(note).chain(end.limits_reached);
            return (notes.collect(), None);
        };
        let word = tasks.vocabulary().word();
        let note = format!("{count} still running; adopted as background {word} {id}");
        let unheard = end_if_unheard(tasks, &id, ctx.caller.as_ref());
        (vec![note], Some(Adopted { id, word, unheard }))
    }

    /// Makes the caller the owner of what is left; `None` if the registry will not have it.
    fn adopt(
        &self,
        tasks: &TaskRegistry,
        command: &str,
        result: &RunResult,
        ctx: &ToolContext,
    ) -> Option<TaskId> {
        let (process, told) = (Arc::clone(&result.process), result.told);
        let output = process.output().reader(self.rendering());
        let stall = self.stall(tasks, ctx);
        let watch = stall.clone();
        let start = StartSpec::new(KIND, command, move || {
            Ok(work(process, None, output, told, watch))
        })
        .already_running();
        start_for(ctx, tasks, start, stall.as_deref())
            .inspect_err(|error| tracing::info!(%error, "left-over processes are ended, not adopted"))
            .ok()
    }
}

/// What a command left running, as a task.
struct Adopted {
    id: TaskId,
    word: &'static str,
    unheard: Delivery,
}

/// Ends what is left of a process.
async fn end(process: &Arc<dyn BashProcess>) -> End {
    process.terminate(EndReason::Asked);
    process.ended().await
}

/// The result for programs.
fn value(result: &RunResult) -> Value {
    let (code, signal) = match &result.exit {
        ShellExit::Code(code) => (Some(*code), None),
        ShellExit::Signal { name, .. } => (None, Some(name.as_str())),
        ShellExit::Failed { .. } | ShellExit::Unseen { .. } => (None, None),
    };
    let spill = result.process.output().spill_path();
    let stream = |stream: &StreamText| {
        let mut value = json!({ "text": stream.text, "truncated": stream.truncated });
        if stream.truncated
            && let Some(path) = &spill
        {
            value["spillPath"] = json!(path);
        }
        value
    };
    json!({
        "kind": "foreground",
        "exitCode": code,
        "signal": signal,
        "timedOut": result.cut == Some(Cut::TimedOut),
        "aborted": result.cut == Some(Cut::Aborted),
        "timeoutMs": u64::try_from(result.timeout.as_millis()).unwrap_or(u64::MAX),
        "stdout": stream(&result.stdout),
        "stderr": stream(&result.stderr),
    })
}
