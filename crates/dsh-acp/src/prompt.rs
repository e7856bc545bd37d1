//! The prompt in flight of a session: which turn is its, and how that ended.
//!
//! **Invariants**
//!
//! 1. At most one prompt is in flight, and each is answered once.
//! 2. Its turn is the one in which its message is logged, whatever opened that: a message that comes while a turn for a
//!    notice is being opened joins it.
//! 3. The message of a prompt that was answered is never logged later, but when its session is closed: an answer comes
//!    after the turn, or when the agent rests without one, and what a closed session was asked in vain is kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::{PromptResponse, StopReason};
use dsh_session::{Event, EventData, MessageSource, TurnEnd};

use crate::error::internal;

/// The place of the prompt in flight.
#[derive(Default)]
pub(crate) struct PromptSlot(Mutex<Option<InFlight>>);

struct InFlight {
    responder: Responder<PromptResponse>,
    /// Its message is this event or a later one.
    from: u64,
    turn: Option<u64>,
    cancelled: bool,
}

impl PromptSlot {
    /// Takes the slot for a prompt whose message will be logged from this number on.
    ///
    /// # Errors
    ///
    /// The responder when another prompt is in flight: it has to refuse this one.
    pub(crate) fn occupy(
        &self,
        responder: Responder<PromptResponse>,
        from: u64,
    ) -> Result<(), Box<Responder<PromptResponse>>> {
        let mut slot = self.lock();
        if slot.is_some() {
            return Err(Box::new(responder));
        }
        *slot = Some(InFlight {
            responder,
            from,
            turn: None,
            cancelled: false,
        });
        Ok(())
    }

    pub(crate) fn cancel(&self) {
        if let Some(prompt) = &mut *self.lock() {
            prompt.cancelled = true;
        }
    }

    /// An event of this turn was shown.
    ///
    /// Returns why the turn failed, when it did and no prompt was answered with that.
    pub(crate) fn shown(&self, event: &Event, turn: u64) -> Option<String> {
        match &event.data {
            EventData::UserMessage(_) if is_prompt(event) => {
                if let Some(prompt) = &mut *self.lock()
                    && event.seq >= prompt.from
                {
                    prompt.turn = Some(turn);
                }
                None
            }
            EventData::TurnEnd { turn, reason } => self.ended(*turn, reason),
            _ => None,
        }
    }

    /// The agent rests. If the message of the prompt is nowhere in `events`, which are those from its number on, it will
    /// never be.
    pub(crate) fn at_rest(&self, from: u64, events: &[Event]) {
        if events.iter().any(is_prompt) {
            return;
        }
        let prompt = self.lock().take_if(|prompt| prompt.from == from);
        let Some(prompt) = prompt else { return };
        let answer = match prompt.cancelled {
            true => Ok(PromptResponse::new(StopReason::Cancelled)),
            false => Err(internal(
                "turn failed: no turn was opened for the prompt; send it again",
            )),
        };
        settle(prompt.responder, answer);
    }

    fn ended(&self, turn: u64, reason: &TurnEnd) -> Option<String> {
        let prompt = self.lock().take_if(|prompt| prompt.turn == Some(turn));
        match (prompt, reason) {
            (Some(prompt), reason) => {
                settle(prompt.responder, answer(reason));
                None
            }
            (None, TurnEnd::Error { message, .. }) => Some(message.clone()),
            (None, _) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<InFlight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_prompt(event: &Event) -> bool {
    matches!(&event.data, EventData::UserMessage(message) if message.source == MessageSource::User)
}

fn answer(reason: &TurnEnd) -> Result<PromptResponse, Error> {
    let stop = match reason {
        TurnEnd::Completed => StopReason::EndTurn,
        TurnEnd::MaxTokens => StopReason::MaxTokens,
        TurnEnd::Aborted { .. } | TurnEnd::Disposed | TurnEnd::Interrupted => StopReason::Cancelled,
        TurnEnd::Error { message, .. } => return Err(internal(format_args!("turn failed: {message}"))),
    };
    Ok(PromptResponse::new(stop))
}

fn settle(responder: Responder<PromptResponse>, answer: Result<PromptResponse, Error>) {
    if let Err(error) = responder.respond_with_result(answer) {
        tracing::debug!("acp: a prompt was not answered: {error}");
    }
}
