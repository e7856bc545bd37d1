//! Which of the messages of a turn is its answer.

use dsh_subagent_process::MAX_ANSWER_BYTES;
use serde_json::Value;

use crate::failure::{Category, Fault};

/// What was said in a turn, as far as it can be the answer.
#[derive(Debug, Default)]
pub(crate) struct Said {
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
        let place = match &message["phase"] {
            Value::Null => &mut self.last_unphased,
            Value::String(phase) if phase == "final_answer" => &mut self.last_final,
            Value::String(phase) if phase == "commentary" => return Ok(()),
            _ => return unknown("unknown agent message phase"),
        };
        if text.len() > MAX_ANSWER_BYTES {
            let fault = format!("an agent message of {} bytes", text.len());
            return Err((Category::ANSWER_TOO_LONG, Fault(fault)));
        }
        *place = Some(text.to_owned());
        Ok(())
    }

    /// The last message that says it is the answer; if none does, the last that says nothing of the kind. A blank one is
    /// none, and another does not take its place.
    pub(crate) fn answer(&self) -> Option<&str> {
        let answer = self.last_final.as_ref().or(self.last_unphased.as_ref())?;
        Some(answer.as_str()).filter(|answer| !answer.trim().is_empty())
    }
}
