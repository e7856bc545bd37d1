//! A log as a page that is the same in every run.

use dsh_llm::{AssistantBlock, text_of};
use dsh_session::{Event, EventData, MessageSource, TurnEnd};

/// One line per event, what was said below it.
pub(super) fn page(events: &[Event]) -> String {
    events.iter().map(|event| block(&event.data)).collect()
}

fn block(data: &EventData) -> String {
    match data {
        EventData::TurnStart { turn, trigger } => format!("== turn {turn}, {trigger:?}\n"),
        EventData::TurnEnd { reason, .. } => format!("== {}\n", end(reason)),
        EventData::StepStart { step, .. } => format!("-- step {step}\n"),
        EventData::StepEnd { .. } => "--\n".to_owned(),
        EventData::RequestHeader { reason, .. } => format!("header, {reason:?}\n"),
        EventData::ModelChoice { model, .. } => format!("model {model}\n"),
        EventData::UserMessage(message) => {
            let who = match &message.source {
                MessageSource::User => "user".to_owned(),
                MessageSource::Plugin { plugin, form, .. } => format!("{form} of {plugin}"),
            };
            said(&who, &text_of(&message.content))
        }
        EventData::AssistantMessage {
            content, interrupted, ..
        } => {
            let who = if *interrupted {
                "assistant, interrupted"
            } else {
                "assistant"
            };
            let blocks: Vec<String> = content.iter().map(assistant).collect();
            said(who, &blocks.join("\n"))
        }
        EventData::ToolCall { call_id, .. } => format!("{call_id} runs\n"),
        EventData::ToolResult {
            call_id,
            content,
            is_error,
            ..
        } => {
            let how = if *is_error { "fails" } else { "returns" };
            said(&format!("{call_id} {how}"), &text_of(content))
        }
    }
}

fn assistant(block: &AssistantBlock) -> String {
    match block {
        AssistantBlock::Text { text } => text.clone(),
        AssistantBlock::Reasoning { text } => format!("({text})"),
        AssistantBlock::ToolCall(call) => format!("{}: {} {}", call.id, call.name, call.arguments),
    }
}

fn end(reason: &TurnEnd) -> String {
    match reason {
        TurnEnd::Completed => "completed".to_owned(),
        TurnEnd::Aborted { reason } => format!("aborted: {reason}"),
        TurnEnd::Disposed => "disposed".to_owned(),
        TurnEnd::MaxTokens => "limit of tokens".to_owned(),
        TurnEnd::Error { step, message, .. } => format!("failed in step {step}: {message}"),
        TurnEnd::Interrupted => "interrupted".to_owned(),
    }
}

fn said(who: &str, text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("    {}\n", without_ages(line)))
        .collect();
    format!("{who}\n{}", lines.concat())
}

/// Ages of tasks differ from run to run: `(running: bash-1 for 3s)` reads `(running: bash-1 for some time)`.
fn without_ages(line: &str) -> String {
    let Some((before, running)) = line.split_once("(running: ") else {
        return line.to_owned();
    };
    let tasks = running.trim_end_matches(')').split(", ");
    let ids: Vec<&str> = tasks.filter_map(|task| task.split(' ').next()).collect();
    format!("{before}(running: {} for some time)", ids.join(", "))
}
