//! The tasks of a session's earlier harnesses, as its log knows them.
//!
//! A task is known from the result that named it to the model, and so is its end, from a notice or from a result. What
//! the model never heard of is not a task of the session.

use std::collections::{BTreeMap, HashMap};

use dsh_llm::{CallId, text_of};
use dsh_session::{Event, EventData, MessageSource};
use dsh_tasks::{EndedTask, Outcome, TaskId, Vocabulary};
use dsh_tools::parse_arguments;
use serde_json::Value;

/// The words that a task may have had when it was named: a deployment can change its vocabulary between two harnesses.
const WORDS: [Vocabulary; 2] = [Vocabulary::Task, Vocabulary::Job];

/// What is known of one task.
#[derive(Debug, Default)]
struct Known {
    label: String,
    /// How it ended.
    end: Option<Outcome>,
    /// Its end, or that it was asked to end, was told.
    told: bool,
}

/// Every task that the log names, in no order that matters. All of them have ended: with their harness, if the log knows
/// no other end.
pub(crate) fn ended_tasks(events: &[Event]) -> Vec<EndedTask> {
    let mut lineage = Lineage::default();
    for event in events {
        lineage.take(&event.data);
    }
    lineage.tasks.into_iter().map(ended).collect()
}

#[derive(Debug, Default)]
struct Lineage<'a> {
    /// Names and arguments of calls without a result.
    calls: HashMap<&'a CallId, (&'a str, &'a str)>,
    tasks: BTreeMap<String, Known>,
}

impl<'a> Lineage<'a> {
    fn take(&mut self, event: &'a EventData) {
        match event {
            EventData::ToolCall {
                call_id,
                name,
                arguments,
            } => {
                self.calls.insert(call_id, (name, arguments));
            }
            EventData::ToolResult {
                call_id,
                value: Some(value),
                ..
            } => {
                let call = self.calls.remove(call_id);
                self.result(call, value);
            }
            EventData::UserMessage(message) => {
                let MessageSource::Plugin { plugin, subjects, .. } = &message.source else {
                    return;
                };
                if plugin != dsh_tool_tasks::NOTICE_PLUGIN {
                    return;
                }
                let end = Vocabulary::end_in_notice(&text_of(&message.content));
                for id in subjects {
                    let known = self.tasks.entry(id.clone()).or_default();
                    known.told = true;
                    known.end = end.clone().or(known.end.take());
                }
            }
            EventData::TurnStart { .. }
            | EventData::TurnEnd { .. }
            | EventData::StepStart { .. }
            | EventData::StepEnd { .. }
            | EventData::RequestHeader { .. }
            | EventData::ModelChoice { .. }
            | EventData::AssistantMessage { .. }
            | EventData::ToolResult { .. } => {}
        }
    }

    fn result(&mut self, call: Option<(&str, &str)>, value: &Value) {
        for words in WORDS {
            let word = words.word();
            if let Some(id) = value[format!("{word}Id")].as_str() {
                self.tasks.entry(id.to_owned()).or_default().label = label(call);
            }
            self.seen(&value[word], Seen::Told);
        }
        // A kill tells that the end was asked for, whatever it came to.
        for row in value.as_array().into_iter().flatten() {
            self.seen(row, Seen::Listed);
        }
    }

    /// A task as the task tools return it.
    fn seen(&mut self, task: &Value, seen: Seen) {
        let (Some(id), Some(status)) = (task["id"].as_str(), task["status"].as_str()) else {
            return;
        };
        // It is a subagent's: that one's session knows it, and may have ended with it.
        if task["subagent"].is_string() {
            return;
        }
        let known = self.tasks.entry(id.to_owned()).or_default();
        if let Some(label) = task["label"].as_str() {
            known.label = label.to_owned();
        }
        let end = Outcome::with_word(status).map(|outcome| match task["detail"].as_str() {
            Some(detail) => outcome.detail(detail),
            None => outcome,
        });
        if end.is_some() {
            known.told |= seen == Seen::Told;
            known.end = end;
        } else if status == "stopping" && seen == Seen::Told {
            // It was asked to end, and its end is not announced then.
            known.told = true;
            known.end = known.end.take().or(Some(Outcome::killed()));
        }
    }
}

/// In what a task was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// In a result about it.
    Told,
    /// In a list, which tells no end.
    Listed,
}

fn ended((id, known): (String, Known)) -> EndedTask {
    let Known { label, end, told } = known;
    let id = TaskId::from(id);
    let task = match end {
        Some(outcome) => EndedTask::new(id, label, outcome),
        None => EndedTask::interrupted(id, label),
    };
    if told { task.told() } else { task }
}

/// What a task does, from the call that started it: the command, what it is for, or the tool.
fn label(call: Option<(&str, &str)>) -> String {
    let Some((tool, arguments)) = call else {
        return String::new();
    };
    let arguments = parse_arguments(arguments.into());
    let label = arguments["command"]
        .as_str()
        .or(arguments["description"].as_str());
    label.unwrap_or(tool).to_owned()
}

#[cfg(test)]
mod tests;
