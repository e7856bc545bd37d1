//! A session's log and what is seen of answers before they are in it, as updates for an editor. Pure.
//!
//! **Invariants**
//!
//! 1. The log decides: all text of an answer that is in it has been shown when the updates of its event are, once and in
//!    order, however much of it was streamed before, and whether pieces of the stream were missed or not.
//! 2. A piece is shown only while its step is the open one and has no answer yet. What comes later is in the answer.
//! 3. A result has a card, also where the log has no `tool/call` for it, as after a crash.
//! 4. The same log gives the same updates, live or replayed, but for the prompts of the editor, which it has shown itself.

use agent_client_protocol::v1::schema::{
    ContentBlock as Block, ContentChunk, SessionUpdate, ToolCall as Card, ToolCallId, ToolCallStatus,
};
use dsh_agent_loop::Live;
use dsh_llm::{AssistantBlock, CallId, ContentBlock, ToolCall};
use dsh_output::visible;
use dsh_session::{Event, EventData, Message, MessageSource};
use dsh_tools::{ToolResult, parse_arguments};
use serde_json::Value;

use crate::card::{Cards, Presenter, texts};

/// Whether the editor has seen the session before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It is there, and shows what its user says itself.
    Live,
    /// It is told everything.
    Replay,
}

/// Makes updates of what happens in a session, in the order of its log.
pub(crate) struct Transcript {
    presenter: Presenter,
    turn: u64,
    step: u64,
    streamed: Streamed,
    calls: Vec<Call>,
}

/// How much of the answer of the open step was shown.
#[derive(Default)]
struct Streamed {
    stage: Stage,
    text: String,
    reasoning: String,
}

#[derive(Default, PartialEq, Eq)]
enum Stage {
    /// No step is open, or its answer is in the log.
    #[default]
    Closed,
    /// Pieces are shown as they come.
    Open,
    /// Pieces were missed: the answer will tell.
    Gap,
}

/// A call of the open step.
struct Call {
    id: CallId,
    name: String,
    args: Value,
    card: Option<Card>,
}

impl Transcript {
    pub(crate) fn new(presenter: Presenter) -> Self {
        Self {
            presenter,
            turn: 0,
            step: 0,
            streamed: Streamed::default(),
            calls: Vec::new(),
        }
    }

    /// The turn that the last event belongs to.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// The cards of the calls that run.
    pub(crate) fn open_cards(&self) -> Cards {
        let open = |call: &Call| Some((call.id.clone(), call.card.clone()?));
        self.calls.iter().filter_map(open).collect()
    }

    /// What an event shows.
    pub(crate) fn event(&mut self, event: &Event, telling: Telling) -> Vec<SessionUpdate> {
        match &event.data {
            EventData::TurnStart { turn, .. } => {
                self.turn = *turn;
                Vec::new()
            }
            EventData::StepStart { step, .. } => {
                self.step = *step;
                self.calls.clear();
                self.streamed = Streamed {
                    stage: Stage::Open,
                    ..Streamed::default()
                };
                Vec::new()
            }
            EventData::UserMessage(message) => self.told(event.seq, message, telling),
            EventData::AssistantMessage {
                content, interrupted, ..
            } => self.answered(content, *interrupted),
            EventData::ToolCall {
                call_id,
                name,
                arguments,
            } => self.begun(call_id, name, arguments),
            EventData::ToolResult {
                call_id,
                content,
                is_error,
                value,
                ..
            } => self.ended(
                call_id,
                ToolResult {
                    content: content.clone(),
                    is_error: *is_error,
                    error: None,
                    value: value.clone(),
                    deliveries: Vec::new().into(),
                },
            ),
            EventData::StepEnd { .. } => {
                self.streamed.stage = Stage::Closed;
                self.calls.clear();
                Vec::new()
            }
            EventData::TurnEnd { .. } | EventData::RequestHeader { .. } | EventData::ModelChoice { .. } => {
                Vec::new()
            }
        }
    }

    /// What a piece of an answer shows. The events that were logged before it was sent have been given to
    /// [`event`](Self::event).
    pub(crate) fn piece(&mut self, piece: &Live) -> Option<SessionUpdate> {
        let (turn, step, text, shown) = match piece {
            Live::Text { turn, step, text } => (turn, step, text, &mut self.streamed.text),
            Live::Reasoning { turn, step, text } => (turn, step, text, &mut self.streamed.reasoning),
            Live::Retry { .. } => return None,
        };
        if self.streamed.stage != Stage::Open || (*turn, *step) != (self.turn, self.step) || text.is_empty() {
            return None;
        }
        shown.push_str(text);
        Some(match piece {
            Live::Reasoning { .. } => SessionUpdate::AgentThoughtChunk(self.chunk(text, "thought")),
            Live::Text { .. } | Live::Retry { .. } => {
                SessionUpdate::AgentMessageChunk(self.chunk(text, "answer"))
            }
        })
    }

    /// Pieces were missed, of the open step at the latest: the events up to now have been given to
    /// [`event`](Self::event).
    pub(crate) fn missed(&mut self) {
        if self.streamed.stage == Stage::Open {
            self.streamed.stage = Stage::Gap;
        }
    }

    fn told(&self, seq: u64, message: &Message, telling: Telling) -> Vec<SessionUpdate> {
        match (&message.source, telling) {
            (MessageSource::User, Telling::Live) => Vec::new(),
            (MessageSource::User, Telling::Replay) => message
                .content
                .iter()
                .filter_map(ContentBlock::as_text)
                .map(|text| {
                    let chunk =
                        ContentChunk::new(Block::from(text)).message_id(format!("prompt-{seq}").as_str());
                    SessionUpdate::UserMessageChunk(chunk)
                })
                .collect(),
            // Not in the user's mouth and not in the model's: a row of its own, which says why the agent goes on.
            (MessageSource::Plugin { form, summary, .. }, _) => {
                let card = Card::new(ToolCallId::new(format!("{form}-{seq}")), visible(summary))
                    .status(ToolCallStatus::Completed)
                    .content(texts(&message.content));
                vec![SessionUpdate::ToolCall(card)]
            }
        }
    }

    /// What of the answer was not shown yet.
    fn answered(&mut self, content: &[AssistantBlock], interrupted: bool) -> Vec<SessionUpdate> {
        let Streamed { text, reasoning, .. } = std::mem::take(&mut self.streamed);
        let mut text = Shown::of(text, content.iter().filter_map(AssistantBlock::as_text));
        let mut thought = Shown::of(reasoning, content.iter().filter_map(AssistantBlock::as_reasoning));
        let mut updates = Vec::new();
        for block in content {
            match block {
                AssistantBlock::Text { text: all } => {
                    let rest = text.rest_of(all);
                    updates.extend(
                        rest.map(|rest| SessionUpdate::AgentMessageChunk(self.chunk(rest, text.message))),
                    );
                }
                AssistantBlock::Reasoning { text: all } => {
                    let rest = thought.rest_of(all);
                    updates.extend(
                        rest.map(|rest| SessionUpdate::AgentThoughtChunk(self.chunk(rest, "thought"))),
                    );
                }
                // A call of an interrupted answer is never run.
                AssistantBlock::ToolCall(_) if interrupted => {}
                AssistantBlock::ToolCall(call) => self.calls.push(Call::new(call)),
            }
        }
        updates
    }

    fn begun(&mut self, id: &CallId, name: &str, arguments: &str) -> Vec<SessionUpdate> {
        let wire = self.wire_id(id);
        let index = self
            .calls
            .iter()
            .position(|call| call.id == *id && call.card.is_none());
        let index = index.unwrap_or_else(|| {
            self.calls.push(Call::of(id, name, arguments));
            self.calls.len() - 1
        });
        let Some(call) = self.calls.get_mut(index) else {
            return Vec::new();
        };
        let card = self.presenter.begun(wire, &call.name, &call.args);
        call.card = Some(card.clone());
        vec![SessionUpdate::ToolCall(card)]
    }

    fn ended(&mut self, id: &CallId, result: ToolResult) -> Vec<SessionUpdate> {
        let wire = self.wire_id(id);
        let Some(index) = self.calls.iter().position(|call| call.id == *id) else {
            return Vec::new();
        };
        let call = self.calls.remove(index);
        let update = self
            .presenter
            .ended(wire.clone(), &call.name, &call.args, &result);
        let update = SessionUpdate::ToolCallUpdate(update);
        match call.card {
            Some(_) => vec![update],
            None => {
                let card = self.presenter.begun(wire, &call.name, &call.args);
                vec![SessionUpdate::ToolCall(card), update]
            }
        }
    }

    /// Models use ids of calls again; an editor would take the later call for the earlier one.
    fn wire_id(&self, id: &CallId) -> ToolCallId {
        ToolCallId::new(format!("{}.{}.{id}", self.turn, self.step))
    }

    fn chunk(&self, text: &str, message: &str) -> ContentChunk {
        let id = format!("{message}-{}.{}", self.turn, self.step);
        ContentChunk::new(Block::from(text)).message_id(id.as_str())
    }
}

impl Call {
    fn new(call: &ToolCall) -> Self {
        Self::of(&call.id, &call.name, &call.arguments)
    }

    fn of(id: &CallId, name: &str, arguments: &str) -> Self {
        Self {
            id: id.clone(),
            name: name.to_owned(),
            args: parse_arguments(arguments.into()),
            card: None,
        }
    }
}

/// How many bytes at the beginning of an answer's blocks were shown.
struct Shown {
    left: usize,
    message: &'static str,
}

impl Shown {
    /// An adapter may settle on another text than it streamed. Then nothing of it counts as shown, and the whole is a
    /// message of its own.
    fn of<'a>(streamed: String, blocks: impl Iterator<Item = &'a str>) -> Self {
        let mut rest = streamed.as_str();
        for block in blocks {
            if rest.is_empty() {
                break;
            }
            rest = match (rest.strip_prefix(block), block.starts_with(rest)) {
                (Some(rest), _) => rest,
                (None, true) => "",
                (None, false) => break,
            };
        }
        match rest {
            "" => Self {
                left: streamed.len(),
                message: "answer",
            },
            _ => Self {
                left: 0,
                message: "settled",
            },
        }
    }

    fn rest_of<'a>(&mut self, block: &'a str) -> Option<&'a str> {
        let shown = self.left.min(block.len());
        self.left -= shown;
        block.get(shown..).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests;
