//! From the events of a stream to chunks.

use std::collections::VecDeque;

use dsh_llm::{CallId, Chunk, FinishReason, ModelError, Usage};

use crate::failure::Reporter;
use crate::wire::{self, CallDelta, Choice, Content, Delta, Event};

/// The most bytes of text, reasoning and calls in one answer: what no model writes is a flood.
pub(crate) const MAX_ANSWER: usize = 32 << 20;

/// The most blocks of one answer, for the same reason.
const MAX_BLOCKS: usize = 1024;

/// What an answer consists of so far. Holds no text; only the ids of its calls.
///
/// Text, reasoning and each call are a block each, numbered as they begin. Usage and finish come with the end of the
/// stream, because a provider may tell the usage after the reason.
#[derive(Debug)]
pub(crate) struct Answer {
    reporter: Reporter,
    /// What the ids begin with that this side has to make.
    id_prefix: String,
    blocks: usize,
    text: Option<usize>,
    reasoning: Option<usize>,
    calls: Vec<Call>,
    size: usize,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

#[derive(Debug)]
struct Call {
    block: usize,
    wire_index: Option<u64>,
    id: Option<String>,
    named: bool,
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    /// The provider says that this was all.
    Done,
}

impl Answer {
    /// Nothing yet. `turn` tells this answer from others of the conversation.
    pub(crate) fn new(reporter: Reporter, turn: usize) -> Self {
        Self {
            reporter,
            id_prefix: format!("call_{turn}"),
            blocks: 0,
            text: None,
            reasoning: None,
            calls: Vec::new(),
            size: 0,
            usage: None,
            finish: None,
        }
    }

    /// Whether the provider said why the answer is over. What is cut after that misses nothing.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Adds what an event says to `out`.
    pub(crate) fn event(&mut self, data: &[u8], out: &mut VecDeque<Chunk>) -> Result<Progress, ModelError> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            return Ok(Progress::Done);
        }
        if data.is_empty() {
            return Ok(Progress::More);
        }
        let event: Event = serde_json::from_slice(data).map_err(|error| self.malformed(error))?;
        if event.is_failure() {
            let event = serde_json::from_slice(data).map_err(|error| self.malformed(error))?;
            return Err(self.reporter.reported(&event));
        }
        for choice in event.choices.into_iter().flatten() {
            if choice.index.unwrap_or_default() == 0 {
                self.choice(choice, out)?;
            }
        }
        let usage = event.usage.as_ref().and_then(wire::usage);
        self.usage = usage.or(self.usage);
        if self.size > MAX_ANSWER {
            let what = format_args!("the answer is longer than {MAX_ANSWER} bytes");
            return Err(self.reporter.passing("MALFORMED_RESPONSE", what));
        }
        Ok(Progress::More)
    }

    /// Adds what the end of the stream tells to `out`.
    pub(crate) fn end(&mut self, out: &mut VecDeque<Chunk>) -> Result<(), ModelError> {
        let Some(mut finish) = self.finish.take() else {
            let what = "the stream ended before the answer was complete";
            return Err(self.reporter.passing("STREAM_CLOSED", what));
        };
        if finish == FinishReason::ToolCalls && self.calls.is_empty() {
            return Err(self.malformed("the model stopped for tool calls but sent none"));
        }
        if finish == FinishReason::Stop && !self.calls.is_empty() {
            finish = FinishReason::ToolCalls;
        }
        if finish == FinishReason::ToolCalls && self.calls.iter().any(|call| !call.named) {
            return Err(self.malformed("a tool call has no name"));
        }
        for (number, call) in self.calls.iter().enumerate() {
            if call.id.is_none() {
                out.push_back(Chunk::ToolCallDelta {
                    index: call.block,
                    id: Some(CallId::new(self.made_id(number))),
                    name: None,
                    arguments: String::new(),
                });
            }
        }
        out.extend(self.usage.map(Chunk::Usage));
        out.push_back(Chunk::Finish(finish));
        Ok(())
    }

    fn choice(&mut self, choice: Choice, out: &mut VecDeque<Chunk>) -> Result<(), ModelError> {
        self.delta(choice.delta.unwrap_or_default(), out)?;
        let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
        if let (Some(reason), None) = (reason, &self.finish) {
            self.finish = Some(self.finish_of(&reason)?);
        }
        Ok(())
    }

    fn delta(&mut self, mut delta: Delta, out: &mut VecDeque<Chunk>) -> Result<(), ModelError> {
        let reasoning = delta.take_reasoning().filter(|text| !text.is_empty());
        if let Some(text) = reasoning {
            let index = self.reasoning.map_or_else(|| self.begin(), Ok)?;
            self.reasoning = Some(index);
            self.size += text.len();
            out.push_back(Chunk::ReasoningDelta { index, text });
        }
        let content = delta.content.map(Content::into_text);
        let texts = [content, delta.refusal].into_iter().flatten();
        for text in texts.filter(|text| !text.is_empty()) {
            let index = self.text.map_or_else(|| self.begin(), Ok)?;
            self.text = Some(index);
            self.size += text.len();
            out.push_back(Chunk::TextDelta { index, text });
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, out)?;
        }
        Ok(())
    }

    fn call(&mut self, delta: CallDelta, out: &mut VecDeque<Chunk>) -> Result<(), ModelError> {
        let mut function = delta.function.unwrap_or_default();
        let arguments = function.take_arguments();
        let id = delta.id.filter(|id| !id.is_empty());
        let name = function.name.filter(|name| !name.is_empty());
        let known = self.known_call(delta.index, id.as_deref(), name.as_deref());
        let position = match known {
            Some(position) => position,
            None => self.begin_call(delta.index)?,
        };
        // Two calls of one id could not be told apart by their results: the second gets one that is made here.
        let id = id.filter(|id| {
            let taken = |call: &Call| call.id.as_ref() == Some(id);
            !self.calls.iter().any(taken)
        });
        let call = &mut self.calls[position];
        let id = id.filter(|_| call.id.is_none());
        call.id = call.id.take().or_else(|| id.clone());
        let name = name.filter(|_| !call.named);
        call.named |= name.is_some();
        if known.is_some() && id.is_none() && name.is_none() && arguments.is_empty() {
            return Ok(());
        }
        self.size += [id.as_deref(), name.as_deref(), Some(&*arguments)]
            .into_iter()
            .flatten()
            .map(str::len)
            .sum::<usize>();
        out.push_back(Chunk::ToolCallDelta {
            index: call.block,
            id: id.map(CallId::new),
            name,
            arguments,
        });
        Ok(())
    }

    /// The call that a delta belongs to. Some providers give no index, and some give all calls the same one: then a
    /// name together with another id begins a call.
    fn known_call(&self, wire_index: Option<u64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let position = match (wire_index, id) {
            (Some(_), _) => self.calls.iter().rposition(|call| call.wire_index == wire_index),
            (None, Some(id)) => self.calls.iter().rposition(|call| call.id.as_deref() == Some(id)),
            (None, None) => self.calls.len().checked_sub(1),
        };
        position.filter(|position| {
            let known = self.calls[*position].id.as_deref();
            let differs = id.is_some() && known.is_some() && id != known;
            !(differs && name.is_some())
        })
    }

    /// The position of a new call.
    fn begin_call(&mut self, wire_index: Option<u64>) -> Result<usize, ModelError> {
        let block = self.begin()?;
        self.calls.push(Call {
            block,
            wire_index,
            id: None,
            named: false,
        });
        Ok(self.calls.len() - 1)
    }

    /// The index of a new block.
    fn begin(&mut self) -> Result<usize, ModelError> {
        if self.blocks == MAX_BLOCKS {
            return Err(self.malformed(format_args!("it has more than {MAX_BLOCKS} parts")));
        }
        self.blocks += 1;
        Ok(self.blocks - 1)
    }

    fn finish_of(&self, reason: &str) -> Result<FinishReason, ModelError> {
        let finish = match reason {
            "stop" | "eos" | "eos_token" | "stop_sequence" | "end_turn" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "length" | "max_tokens" => FinishReason::MaxTokens,
            "content_filter" => FinishReason::Error {
                message: self
                    .reporter
                    .clean("the provider's content filter stopped the answer"),
                code: Some("CONTENT_FILTER".to_owned()),
            },
            "insufficient_system_resource" => {
                let what = "ran out of resources while answering";
                return Err(self.reporter.passing("SERVER", what));
            }
            other => FinishReason::Error {
                message: self.reporter.clean(&format!(
                    "the provider stopped the answer for an unknown reason: {other}"
                )),
                code: Some("UNKNOWN_FINISH_REASON".to_owned()),
            },
        };
        Ok(finish)
    }

    /// An id for the call at this place, which no other call has.
    fn made_id(&self, number: usize) -> String {
        let mut id = format!("{}_{number}", self.id_prefix);
        while self.calls.iter().any(|call| call.id.as_ref() == Some(&id)) {
            id.push('_');
        }
        id
    }

    fn malformed(&self, what: impl std::fmt::Display) -> ModelError {
        let what = format_args!("the answer cannot be read: {what}");
        self.reporter.passing("MALFORMED_RESPONSE", what)
    }
}

#[cfg(test)]
mod tests;
