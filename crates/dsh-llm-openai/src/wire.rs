//! One event of the stream, as the provider writes it. What is not named here is not read.

use dsh_llm::Usage;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) object: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    pub(crate) delta: Option<Delta>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta {
    pub(crate) content: Option<Content>,
    pub(crate) refusal: Option<String>,
    pub(crate) reasoning_content: Option<String>,
    /// What some providers call it, a few of them beside the other name.
    pub(crate) reasoning: Option<Value>,
    pub(crate) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CallDelta {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<FunctionDelta>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionDelta {
    pub(crate) name: Option<String>,
    pub(crate) arguments: Option<Value>,
}

/// Text, which some servers send as they take it: in parts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// What has no text is of a kind that was not asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    text: Option<String>,
}

impl Event {
    /// Whether it reports a failure.
    pub(crate) fn is_failure(&self) -> bool {
        let reported = self.error.as_ref().is_some_and(|error| !is_blank(error));
        reported || self.object.as_deref() == Some("error")
    }
}

impl Delta {
    /// The reasoning under one of its names.
    pub(crate) fn take_reasoning(&mut self) -> Option<String> {
        let other = self.reasoning.take().and_then(|value| match value {
            Value::String(text) => Some(text),
            _ => None,
        });
        self.reasoning_content.take().or(other)
    }
}

impl FunctionDelta {
    /// The arguments as text: some servers send them whole, as the value that the text would be of.
    pub(crate) fn take_arguments(&mut self) -> String {
        match self.arguments.take() {
            None => String::new(),
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
        }
    }
}

impl Content {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

/// Whether a value says nothing: servers have a field of each kind for what did not happen.
pub(crate) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(happened) => !happened,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(fields) => fields.values().all(is_blank),
    }
}

/// The counts of tokens in a value, cached ones told from the others; nothing if it has none. What is no count is none:
/// an answer is not worth less for it.
pub(crate) fn usage(value: &Value) -> Option<Usage> {
    let prompt = count(&value["prompt_tokens"]);
    let completion = count(&value["completion_tokens"]);
    prompt.or(completion)?;
    let details = || count(&value["prompt_tokens_details"]["cached_tokens"]);
    let prompt = prompt.unwrap_or_default();
    let cached = count(&value["prompt_cache_hit_tokens"]).or_else(details);
    let cached = cached.unwrap_or_default().min(prompt);
    Some(Usage {
        input_tokens: prompt - cached,
        cache_read_tokens: cached,
        output_tokens: completion.unwrap_or_default(),
    })
}

/// A count, at most the greatest that there is.
fn count(value: &Value) -> Option<u64> {
    let beyond = || value.as_f64().filter(|number| *number >= u64::MAX as f64);
    value.as_u64().or_else(|| beyond().map(|_| u64::MAX))
}
