//! One event of the stream, as the provider writes it. What is not named here is not read.

use dsh_llm::Usage;
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Counts>,
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
    pub(crate) content: Option<String>,
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
    pub(crate) arguments: Option<String>,
}

/// Counts of tokens, cached ones counted with the others.
#[derive(Debug, Deserialize)]
pub(crate) struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_cache_hit_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Event {
    /// Whether it reports a failure.
    pub(crate) fn is_failure(&self) -> bool {
        self.error.is_some() || self.object.as_deref() == Some("error")
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

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        let details = counts
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens);
        let prompt = counts.prompt_tokens.unwrap_or_default();
        let cached = counts.prompt_cache_hit_tokens.or(details).unwrap_or_default();
        let cached = cached.min(prompt);
        Self {
            input_tokens: prompt - cached,
            cache_read_tokens: cached,
            output_tokens: counts.completion_tokens.unwrap_or_default(),
        }
    }
}
