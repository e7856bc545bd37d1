//! From JSON to a script, with all faults at once.

use std::{collections::BTreeSet, path::PathBuf};

use dsh_llm::{AssistantBlock, CallId, FinishReason, ModelError, Retry, ToolCall};
use serde_json::{Map, Value};

use crate::{
    Fault,
    script::{End, Turn},
};

const TURN_KEYS: [&str; 9] = [
    "text",
    "reasoning",
    "tool_calls",
    "finish",
    "hang",
    "cut",
    "error",
    "expect",
    "wait_for_file",
];
const ENDS: [&str; 4] = ["finish", "hang", "cut", "error"];
const GUARDS: [&str; 2] = ["expect", "wait_for_file"];

/// The turns of a script.
pub(crate) fn decode(json: &str) -> Result<Vec<Turn>, Vec<Fault>> {
    let mut decoder = Decoder::default();
    let turns = match serde_json::from_str(json) {
        Ok(script) => decoder.script(&script),
        Err(error) => {
            decoder.fault("", format!("no JSON: {error}"));
            Vec::new()
        }
    };
    if decoder.faults.is_empty() {
        Ok(turns)
    } else {
        Err(decoder.faults)
    }
}

#[derive(Default)]
struct Decoder {
    faults: Vec<Fault>,
    /// How many calls there were, for ids.
    calls: usize,
}

impl Decoder {
    fn fault(&mut self, place: &str, problem: impl Into<String>) {
        self.faults.push(Fault {
            place: place.to_owned(),
            problem: problem.into(),
        });
    }

    fn script(&mut self, script: &Value) -> Vec<Turn> {
        let Some(script) = self.object("", script, &["turns"]) else {
            return Vec::new();
        };
        let turns = match script.get("turns") {
            Some(turns) => turns,
            None => return self.missing("", "turns"),
        };
        self.array("turns", turns, Self::turn)
    }

    fn turn(&mut self, place: &str, value: &Value) -> Option<Turn> {
        let turn = self.object(place, value, &TURN_KEYS)?;
        if turn.keys().all(|key| GUARDS.contains(&key.as_str())) {
            self.fault(
                place,
                "says nothing: give text, tool_calls, finish, hang, cut or error",
            );
        }
        let content = self.content(place, turn);
        let has_calls = content.iter().any(|block| block.as_tool_call().is_some());
        Some(Turn {
            expect: self.strings(place, turn, "expect"),
            wait_for_file: self.string(place, turn, "wait_for_file").map(PathBuf::from),
            end: self.end(place, turn, has_calls),
            content,
            usage: None,
        })
    }

    fn content(&mut self, place: &str, turn: &Map<String, Value>) -> Vec<AssistantBlock> {
        let reasoning = self.string(place, turn, "reasoning");
        let text = self.string(place, turn, "text");
        let mut content: Vec<_> = reasoning
            .map(|text| AssistantBlock::Reasoning { text })
            .into_iter()
            .chain(text.map(|text| AssistantBlock::Text { text }))
            .collect();
        if let Some(calls) = turn.get("tool_calls") {
            let place = format!("{place}.tool_calls");
            let calls = self.array(&place, calls, Self::call);
            let mut ids = BTreeSet::new();
            for call in &calls {
                if !ids.insert(&call.id) {
                    self.fault(&place, format!("two calls have the id {:?}", call.id.as_str()));
                }
            }
            content.extend(calls.into_iter().map(AssistantBlock::ToolCall));
        }
        content
    }

    fn call(&mut self, place: &str, value: &Value) -> Option<ToolCall> {
        self.calls += 1;
        let number = self.calls;
        let call = self.object(place, value, &["name", "arguments", "id"])?;
        let id = self.string(place, call, "id");
        let arguments = match call.get("arguments") {
            None => "{}".to_owned(),
            Some(Value::String(raw)) => raw.clone(),
            Some(object @ Value::Object(_)) => object.to_string(),
            Some(other) => {
                self.wrong(&format!("{place}.arguments"), "an object or a string", other);
                String::new()
            }
        };
        Some(ToolCall {
            id: CallId::new(id.unwrap_or_else(|| format!("call-{number}"))),
            name: self.required(place, call, "name"),
            arguments,
        })
    }

    fn end(&mut self, place: &str, turn: &Map<String, Value>, has_calls: bool) -> End {
        let given: Vec<_> = ENDS.into_iter().filter(|key| turn.contains_key(*key)).collect();
        if given.len() > 1 {
            self.fault(
                place,
                format!("has {}, which exclude each other", given.join(" and ")),
            );
        }
        for key in ["hang", "cut"] {
            match turn.get(key) {
                None | Some(Value::Bool(true)) => {}
                Some(other) => self.wrong(&format!("{place}.{key}"), "true", other),
            }
        }
        match given.first() {
            Some(&"hang") => End::Hang,
            Some(&"cut") => End::Cut,
            Some(&"error") => End::Fail(self.error(&format!("{place}.error"), &turn["error"])),
            Some(_) => End::Finish(self.finish(&format!("{place}.finish"), &turn["finish"])),
            None if has_calls => End::Finish(FinishReason::ToolCalls),
            None => End::Finish(FinishReason::Stop),
        }
    }

    fn finish(&mut self, place: &str, value: &Value) -> FinishReason {
        match value.as_str() {
            Some("stop") => FinishReason::Stop,
            Some("tool-calls") => FinishReason::ToolCalls,
            Some("max-tokens") => FinishReason::MaxTokens,
            Some(_) | None => {
                self.wrong(place, r#""stop", "tool-calls" or "max-tokens""#, value);
                FinishReason::Stop
            }
        }
    }

    fn error(&mut self, place: &str, value: &Value) -> ModelError {
        let Some(error) = self.object(place, value, &["message", "code", "retry"]) else {
            return ModelError::lasting("", "");
        };
        let code = self.string(place, error, "code");
        let message = self.required(place, error, "message");
        let retry = match error.get("retry").map(|retry| (retry.as_str(), retry)) {
            None | Some((Some("never"), _)) => Retry::Never,
            Some((Some("later"), _)) => Retry::Later { after: None },
            Some((_, other)) => {
                self.wrong(&format!("{place}.retry"), r#""later" or "never""#, other);
                Retry::Never
            }
        };
        ModelError {
            message,
            code: code.unwrap_or_else(|| "SCRIPTED".to_owned()),
            retry,
        }
    }

    fn object<'a>(
        &mut self,
        place: &str,
        value: &'a Value,
        known: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        let Value::Object(object) = value else {
            self.wrong(place, "an object", value);
            return None;
        };
        for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
            self.fault(
                place,
                format!("unknown key {key:?} (known: {})", known.join(", ")),
            );
        }
        Some(object)
    }

    fn array<T>(
        &mut self,
        place: &str,
        value: &Value,
        mut item: impl FnMut(&mut Self, &str, &Value) -> Option<T>,
    ) -> Vec<T> {
        let Value::Array(items) = value else {
            self.wrong(place, "an array", value);
            return Vec::new();
        };
        let numbered = items.iter().enumerate();
        numbered
            .filter_map(|(index, value)| item(self, &format!("{place}[{index}]"), value))
            .collect()
    }

    fn strings(&mut self, place: &str, object: &Map<String, Value>, key: &str) -> Vec<String> {
        let Some(value) = object.get(key) else {
            return Vec::new();
        };
        self.array(&format!("{place}.{key}"), value, Self::text)
    }

    fn string(&mut self, place: &str, object: &Map<String, Value>, key: &str) -> Option<String> {
        self.text(&format!("{place}.{key}"), object.get(key)?)
    }

    fn required(&mut self, place: &str, object: &Map<String, Value>, key: &str) -> String {
        if !object.contains_key(key) {
            return self.missing(place, key);
        }
        self.string(place, object, key).unwrap_or_default()
    }

    fn text(&mut self, place: &str, value: &Value) -> Option<String> {
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.wrong(place, "a string", value);
        }
        text
    }

    fn wrong(&mut self, place: &str, expected: &str, found: &Value) {
        let found: String = found.to_string().chars().take(60).collect();
        self.fault(place, format!("must be {expected}, is {found}"));
    }

    fn missing<T: Default>(&mut self, place: &str, key: &str) -> T {
        self.fault(place, format!("has no {key:?}"));
        T::default()
    }
}
