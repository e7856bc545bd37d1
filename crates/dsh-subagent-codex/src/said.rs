//! Which of the messages of a turn is its answer.

use serde_json::Value;

use crate::failure::Fault;

/// What was said in a turn, as far as it can be the answer.
#[derive(Debug, Default)]
pub(crate) struct Said {
    last_final: Option<String>,
    last_unphased: Option<String>,
}

impl Said {
    /// Hears a message. Commentary is none of the answer.
    pub(crate) fn hear(&mut self, message: &Value) -> Result<(), Fault> {
        let Some(text) = message["text"].as_str() else {
            return Err(Fault("invalid agent message".to_owned()));
        };
        let place = match &message["phase"] {
            Value::Null => &mut self.last_unphased,
            Value::String(phase) if phase == "final_answer" => &mut self.last_final,
            Value::String(phase) if phase == "commentary" => return Ok(()),
            _ => return Err(Fault("unknown agent message phase".to_owned())),
        };
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
