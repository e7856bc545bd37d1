//! What came of a child's turn.

use dsh_agent::Agent;
use dsh_llm::{AssistantBlock, ContentBlock};
use dsh_session::{Event, EventData, TurnEnd};
use dsh_subagent::{Diagnostic, RunResult, StopReason};
use dsh_tasks::TaskSnapshot;

use crate::structured::Structured;

/// What came of what happened in a child's own log, and whether it was cancelled meanwhile.
pub(crate) fn of(own: &[Event], structured: Option<&Structured>, cancelled: bool) -> RunResult {
    let result = match last_end(own) {
        Some(TurnEnd::Completed) => completed(structured),
        Some(TurnEnd::MaxTokens) => RunResult::ended(StopReason::MaxTokens),
        Some(TurnEnd::Error { message, .. }) => {
            RunResult::failed(StopReason::Error, Diagnostic::new(message.as_str()))
        }
        Some(TurnEnd::Aborted { .. } | TurnEnd::Disposed | TurnEnd::Interrupted) | None => {
            RunResult::aborted()
        }
    };
    let is_cut_short = cancelled && (result.stop != StopReason::Completed || is_at_work(own));
    let result = if is_cut_short {
        RunResult::aborted()
    } else {
        result
    };
    match result.stop {
        // What it had said before it failed is no answer.
        StopReason::Error => result,
        _ => result.with_output(last_said(own)),
    }
}

/// A turn that ended as it should is a success if it handed over what was asked for.
fn completed(structured: Option<&Structured>) -> RunResult {
    let value = structured.map(Structured::value);
    if let Some(None) = value {
        let missing = "the subagent ended without handing over a structured result";
        return RunResult::failed(StopReason::Error, Diagnostic::new(missing));
    }
    RunResult {
        structured: value.flatten().cloned(),
        ..RunResult::ended(StopReason::Completed)
    }
}

fn last_end(own: &[Event]) -> Option<&TurnEnd> {
    own.iter().rev().find_map(|event| match &event.data {
        EventData::TurnEnd { reason, .. } => Some(reason),
        _ => None,
    })
}

/// Whether a turn is open.
fn is_at_work(own: &[Event]) -> bool {
    let last = own.iter().rev().find_map(|event| match &event.data {
        EventData::TurnStart { .. } => Some(true),
        EventData::TurnEnd { .. } => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}

/// The last thing the child said, if it said anything.
fn last_said(own: &[Event]) -> Vec<ContentBlock> {
    let said = own.iter().rev().find_map(|event| match &event.data {
        EventData::AssistantMessage { content, .. } => text_of(content),
        _ => None,
    });
    said.map(ContentBlock::text).into_iter().collect()
}

fn text_of(content: &[AssistantBlock]) -> Option<String> {
    let texts = content.iter().filter_map(|block| match block {
        AssistantBlock::Text { text } => Some(text.as_str()),
        AssistantBlock::Reasoning { .. } | AssistantBlock::ToolCall(_) => None,
    });
    let text: String = texts.collect();
    (!text.is_empty()).then_some(text)
}

/// Names the tasks of a child that end with it, behind its answer.
pub(crate) fn with_ended(mut result: RunResult, child: &Agent, tasks: &[TaskSnapshot]) -> RunResult {
    let live = tasks
        .iter()
        .filter(|task| task.owner.as_ref() == Some(child.id()) && !task.status.is_terminal());
    let named: Vec<String> = live
        .map(|task| format!("{} ({}: {})", task.id, task.kind, task.label_line()))
        .collect();
    if named.is_empty() {
        return result;
    }
    let gap = if result.output.is_empty() { "" } else { "\n" };
    let note = format!("{gap}[ended with the subagent: {}]", named.join(", "));
    result.output.push(ContentBlock::text(note));
    result
}
