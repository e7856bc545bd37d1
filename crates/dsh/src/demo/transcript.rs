//! What happens, printed as it happens.

use std::io;

use dsh_llm::{AssistantBlock, text_of};
use dsh_session::{Event, EventData, MessageSource, TurnTrigger};
use dsh_tasks::Vocabulary;
use serde_json::Value;

use crate::output::say;

/// Prints the log of one agent for people.
pub(super) struct Transcript {
    words: Vocabulary,
}

impl Transcript {
    pub(super) fn new(words: Vocabulary) -> Self {
        Self { words }
    }

    /// Prints an event, if it is worth showing.
    pub(super) fn show(&self, event: &Event) -> io::Result<()> {
        match &event.data {
            EventData::TurnStart { trigger, .. } => say(match trigger {
                TurnTrigger::Message => "\n== A person asks.".to_owned(),
                TurnTrigger::Notice => format!("\n== Nobody asks. A {} has ended.", self.words.word()),
            }),
            EventData::UserMessage(message) => {
                let mark = match message.source {
                    MessageSource::User => "you: ",
                    MessageSource::Plugin { .. } => "!! ",
                };
                say_aligned(mark, &text_of(&message.content))
            }
            EventData::AssistantMessage { content, .. } => content.iter().try_for_each(|block| match block {
                AssistantBlock::Text { text } => say_aligned("dsh: ", text),
                AssistantBlock::Reasoning { .. } | AssistantBlock::ToolCall(_) => Ok(()),
            }),
            EventData::ToolCall { name, arguments, .. } => {
                say_aligned(">> ", &format!("{name}{}", shown(arguments)))
            }
            EventData::ToolResult { content, .. } => say_aligned("<< ", &text_of(content)),
            EventData::TurnEnd { .. } => say("-- the agent is idle"),
            EventData::StepStart { .. }
            | EventData::StepEnd { .. }
            | EventData::RequestHeader { .. }
            | EventData::ModelChoice { .. } => Ok(()),
        }
    }
}

/// The arguments of a call as words: values, with the names of those that are no plain text.
fn shown(arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let arguments = arguments.as_object().into_iter().flatten();
    let shown = arguments.map(|(name, value)| match value {
        Value::String(text) => format!("  {text}"),
        Value::Bool(true) => format!("  ({name})"),
        other => format!("  {name}: {other}"),
    });
    shown.collect()
}

/// Prints a text with a mark before its first line and the others aligned below.
fn say_aligned(mark: &str, text: &str) -> io::Result<()> {
    let mut lines = text.lines();
    say(format_args!("{mark}{}", lines.next().unwrap_or_default()))?;
    let margin = mark.len();
    lines.try_for_each(|line| say(format_args!("{:margin$}{line}", "")))
}
