//! What an agent was asked, and whether it is at work: the part of the state that a driver acts on.
//!
//! # Invariants
//!
//! 1. A turn is opened in the same moment in which its reason is taken, and an agent is idle only when nothing is left
//!    that opens a turn: there is no moment between the last look and being idle.
//! 2. A turn that found nothing for its next step is over in the same moment: what comes then opens another one, and
//!    nothing stops it any more.
//! 3. A cancellation drops what was asked before it, and no notice; it concerns the turn that is open, if one is. The
//!    notices that are there when a cancelled turn ends open no turn: a stop is not answered by going on.
//! 4. An agent that has concluded opens no turn and takes no further step; nothing undoes that.
//! 5. Notices alone open at most `max_consecutive` turns in a row. What refills that is a person's message that was
//!    taken, not one that arrived.

use std::collections::VecDeque;

use dsh_session::{Message, MessageSource, TurnTrigger};
use tokio_util::sync::CancellationToken;

use super::State;
use super::queue::Place;

/// Whether an agent is at work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AgentStatus {
    /// No turn is open.
    #[default]
    Idle,
    /// A turn is open.
    Running,
    /// It takes nothing any more.
    Disposed,
}

/// Whether notices open turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakePolicy {
    /// A notice opens a turn of an idle agent.
    Wake {
        /// At most so many in a row without a message from a person.
        max_consecutive: u32,
    },
    /// Notices wait for the next turn.
    Quiet,
}

impl Default for WakePolicy {
    /// At most 3 in a row.
    fn default() -> Self {
        Self::Wake { max_consecutive: 3 }
    }
}

/// Why a turn has to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// Somebody cancelled it.
    Cancelled {
        /// In their words.
        reason: String,
    },
    /// The agent is being disposed.
    Disposed,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Desk {
    status: AgentStatus,
    driver: Option<WakePolicy>,
    wakes_spent: u32,
    next_turn: VecDeque<Message>,
    next_step: Vec<Message>,
    turn: Option<OpenTurn>,
    concluded: bool,
    /// Notices before this place open no turn.
    muted_before: Place,
}

struct OpenTurn {
    token: CancellationToken,
    cancelled: Option<String>,
    /// It has found nothing to go on with.
    over: bool,
}

impl Desk {
    pub(crate) fn status(&self) -> AgentStatus {
        self.status
    }

    pub(crate) fn is_driven(&self) -> bool {
        self.driver.is_some()
    }

    pub(crate) fn leave(&mut self) {
        self.driver = None;
    }

    pub(crate) fn ask_next_turn(&mut self, message: Message) {
        self.next_turn.push_back(message);
    }

    pub(crate) fn ask_next_step(&mut self, message: Message) {
        self.next_step.push(message);
    }

    /// Drops what was asked and cancels the open turn, whose token is returned to be cancelled without the lock. For one
    /// that is over it comes too late, but is heard: no notice answers it.
    pub(crate) fn cancel(&mut self, reason: &str) -> Option<CancellationToken> {
        self.next_turn.clear();
        self.next_step.clear();
        let turn = self.turn.as_mut()?;
        turn.cancelled.get_or_insert_with(|| reason.to_owned());
        (!turn.over).then(|| turn.token.clone())
    }

    /// The open turn takes no further step, and no other one is opened.
    pub(crate) fn conclude(&mut self) {
        self.concluded = true;
        self.next_turn.clear();
        self.next_step.clear();
    }

    pub(crate) fn is_concluded(&self) -> bool {
        self.concluded
    }

    /// Whether anything that is asked can still be taken.
    pub(crate) fn takes(&self) -> bool {
        !self.concluded && self.status != AgentStatus::Disposed
    }

    /// From now on nothing is taken; returns the token of the open turn. What waits is kept for
    /// [`untaken`](Self::untaken).
    pub(crate) fn retire(&mut self) -> Option<CancellationToken> {
        self.status = AgentStatus::Disposed;
        self.turn.as_ref().map(|turn| turn.token.clone())
    }

    /// What waits and no turn will take, once nothing is taken any more.
    pub(crate) fn untaken(&mut self) -> Vec<Message> {
        if self.status != AgentStatus::Disposed {
            return Vec::new();
        }
        let mut untaken = std::mem::take(&mut self.next_step);
        untaken.extend(self.next_turn.drain(..));
        untaken
    }

    pub(crate) fn stop(&self) -> Option<Stop> {
        if self.status == AgentStatus::Disposed {
            return Some(Stop::Disposed);
        }
        let turn = self.turn.as_ref().filter(|turn| !turn.over)?;
        let reason = turn.cancelled.clone()?;
        Some(Stop::Cancelled { reason })
    }

    /// The open turn has found nothing to go on with. One that was cancelled before that stays cancelled.
    pub(crate) fn end_turn(&mut self) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.cancelled.is_none()) {
            turn.over = true;
        }
    }

    fn counted(&mut self, messages: &[Message]) {
        if messages
            .iter()
            .any(|message| message.source == MessageSource::User)
        {
            self.wakes_spent = 0;
        }
    }
}

impl State {
    /// `false` when somebody drives already. What waits already opens no turn: it goes into the first that is opened.
    pub(crate) fn seat(&mut self, policy: WakePolicy) -> bool {
        if self.desk.is_driven() {
            return false;
        }
        self.desk.driver = Some(policy);
        self.desk.muted_before = self.notices.next_place();
        true
    }

    /// Opens a turn if something asks for one, and takes the messages it begins with: what was to join one, and the first
    /// of those that want their own. The notices are the caller's to lease.
    pub(crate) fn open_turn(&mut self, token: &CancellationToken) -> Option<(TurnTrigger, Vec<Message>)> {
        let trigger = self.opener()?;
        if trigger == TurnTrigger::Notice {
            self.desk.wakes_spent += 1;
        }
        self.desk.status = AgentStatus::Running;
        self.desk.turn = Some(OpenTurn {
            token: token.clone(),
            cancelled: None,
            over: false,
        });
        let mut messages = std::mem::take(&mut self.desk.next_step);
        messages.extend(self.desk.next_turn.pop_front());
        self.desk.counted(&messages);
        Some((trigger, messages))
    }

    /// The messages for the next step of an open turn; none once the agent is being disposed, which keeps them.
    pub(crate) fn take_step(&mut self) -> Vec<Message> {
        if self.desk.status == AgentStatus::Disposed {
            return Vec::new();
        }
        let messages = std::mem::take(&mut self.desk.next_step);
        self.desk.counted(&messages);
        messages
    }

    pub(crate) fn close_turn(&mut self) {
        let Some(turn) = self.desk.turn.take() else {
            return;
        };
        if turn.cancelled.is_some() {
            self.desk.muted_before = self.notices.next_place();
        }
        if self.desk.status == AgentStatus::Running {
            self.desk.status = AgentStatus::Idle;
        }
    }

    /// Whether nothing is done and nothing will be without a new event.
    pub(crate) fn at_rest(&self) -> bool {
        match self.desk.status {
            AgentStatus::Idle => self.opener().is_none(),
            AgentStatus::Running => false,
            AgentStatus::Disposed => !self.desk.is_driven(),
        }
    }

    fn opener(&self) -> Option<TurnTrigger> {
        if self.desk.status != AgentStatus::Idle || self.desk.concluded {
            return None;
        }
        if !self.desk.next_turn.is_empty() || !self.desk.next_step.is_empty() {
            return Some(TurnTrigger::Message);
        }
        let may_wake = match self.desk.driver {
            Some(WakePolicy::Wake { max_consecutive }) => self.desk.wakes_spent < max_consecutive,
            Some(WakePolicy::Quiet) | None => false,
        };
        let wakes = may_wake && self.notices.visible_since(self.desk.muted_before) > 0;
        wakes.then_some(TurnTrigger::Notice)
    }
}
