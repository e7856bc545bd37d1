//! From the log to what the model reads.
//!
//! What a model sees is what the log says, and nothing else: a request is the messages of all events strictly before
//! its `step/start`, under the latest `request/header`, which stands at the latest directly after that `step/start`, but for
//! a `model/choice` that came in between.

use dsh_llm::{AssistantBlock, ModelMessage, ModelRequest};

use crate::{Event, EventData, Session};

/// The messages of a log, kept up with it: only new events cost anything.
///
/// ```
/// use dsh_llm::{ContentBlock, ModelMessage};
/// use dsh_session::{Derivation, EventData, Message, Session, SessionId, TurnTrigger};
///
/// let session = Session::new(SessionId::new("s-1"), None);
/// session.append(EventData::TurnStart { turn: 1, trigger: TurnTrigger::Message })?;
/// session.append(EventData::UserMessage(Message::user("hello")))?;
///
/// let mut derivation = Derivation::default();
/// derivation.catch_up(&session);
/// let content = vec![ContentBlock::text("hello")];
/// assert_eq!(derivation.messages(), [ModelMessage::User { content }]);
/// # Ok::<(), dsh_session::AppendError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Derivation {
    messages: Vec<ModelMessage>,
    next: u64,
}

impl Derivation {
    /// Takes the events that the log has and this has not.
    pub fn catch_up(&mut self, session: &Session) {
        session.with_events_from(self.next, |events| self.extend(events));
    }

    /// The messages so far.
    pub fn messages(&self) -> &[ModelMessage] {
        &self.messages
    }

    fn extend(&mut self, events: &[Event]) {
        self.messages
            .extend(events.iter().filter_map(|event| message(&event.data)));
        self.next += events.len() as u64;
    }
}

/// The messages of these events.
pub fn derive(events: &[Event]) -> Vec<ModelMessage> {
    events.iter().filter_map(|event| message(&event.data)).collect()
}

/// The request of the step that starts at `step_start_seq`, rebuilt from the log alone; `None` when no step starts there
/// or no header was logged for it. `events` is the log from its beginning.
pub fn request_at(events: &[Event], step_start_seq: u64) -> Option<ModelRequest> {
    let start = usize::try_from(step_start_seq).ok()?;
    let EventData::StepStart { .. } = events.get(start)?.data else {
        return None;
    };
    let is_choice = |event: &&Event| matches!(event.data, EventData::ModelChoice { .. });
    let choices = events[start + 1..].iter().take_while(is_choice).count();
    let until = events.len().min(start + choices + 2);
    let header = events[..until].iter().rev().find_map(|event| match &event.data {
        EventData::RequestHeader { header, .. } => Some(header.clone()),
        _ => None,
    })?;
    Some(ModelRequest {
        header,
        messages: derive(&events[..start]),
    })
}

/// What the model reads of an event.
fn message(data: &EventData) -> Option<ModelMessage> {
    match data {
        EventData::UserMessage(message) => Some(ModelMessage::User {
            content: message.content.clone(),
        }),
        EventData::AssistantMessage {
            content, interrupted, ..
        } => {
            let never_ran = |block: &AssistantBlock| *interrupted && block.as_tool_call().is_some();
            let content: Vec<_> = content
                .iter()
                .filter(|block| !never_ran(block))
                .cloned()
                .collect();
            (!content.is_empty()).then_some(ModelMessage::Assistant { content })
        }
        EventData::ToolResult {
            call_id,
            content,
            is_error,
            ..
        } => Some(ModelMessage::ToolResult {
            call_id: call_id.clone(),
            content: content.clone(),
            is_error: *is_error,
        }),
        EventData::TurnStart { .. }
        | EventData::TurnEnd { .. }
        | EventData::StepStart { .. }
        | EventData::StepEnd { .. }
        | EventData::RequestHeader { .. }
        | EventData::ModelChoice { .. }
        | EventData::ToolCall { .. } => None,
    }
}
