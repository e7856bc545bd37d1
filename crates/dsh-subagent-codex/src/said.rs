//! Which of the messages of a turn is its answer.

use dsh_subagent_process::MAX_ANSWER_BYTES;
use serde_json::Value;

use crate::failure::{Category, Fault};

/// What was said in a turn, as far as it can be the answer.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// What Codex has called a part of its answer, one below the other.
    parts: String,
    last_final: Option<String>,
    last_unphased: Option<String>,
}

impl Said {
    /// Hears a message. Commentary is none of the answer.
    ///
    /// # Errors
    ///
    /// What cannot be an answer.
    pub(crate) fn hear(&mut self, message: &Value) -> Result<(), (Category, Fault)> {
        let unknown = |fault: &str| Err((Category::UNKNOWN, Fault(fault.to_owned())));
        let Some(text) = message["text"].as_str() else {
            return unknown("invalid agent message");
        };
        let phase = match &message["phase"] {
            Value::Null => Phase::Unphased,
            Value::String(phase) if phase == "final_answer" => Phase::Final,
            Value::String(phase) if phase == "partial_answer" => Phase::Part,
            Value::String(phase) if phase == "commentary" => return Ok(()),
            _ => return unknown("unknown agent message phase"),
        };
        let length = self.parts.len() + text.len();
        if length > MAX_ANSWER_BYTES {
            let fault = format!("an answer of {length} bytes");
            return Err((Category::ANSWER_TOO_LONG, Fault(fault)));
        }
        match phase {
            Phase::Final => self.last_final = Some(text.to_owned()),
            Phase::Unphased => self.last_unphased = Some(text.to_owned()),
            Phase::Part => {
                below(&mut self.parts, text);
                // What was said before the answer began is none of it.
                self.last_unphased = None;
            }
        }
        Ok(())
    }

    /// The parts of the answer, and below them its end: the last message that says it is the answer; if none does, the last
    /// that says nothing of the kind. A blank end is none, and another does not take its place.
    pub(crate) fn answer(&self) -> Option<String> {
        let mut answer = self.parts.clone();
        let end = self.last_final.as_ref().or(self.last_unphased.as_ref());
        below(&mut answer, end.map(String::as_str).unwrap_or_default());
        (!answer.is_empty()).then_some(answer)
    }
}

enum Phase {
    Part,
    Final,
    Unphased,
}

/// Adds a text, unless it is blank, as a paragraph of its own.
fn below(answer: &mut String, text: &str) {
    if text.trim().is_empty() {
        return;
    }
    if !answer.is_empty() {
        answer.push_str("\n\n");
    }
    answer.push_str(text);
}
