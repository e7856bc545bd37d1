//! Who runs an agent's turns.
//!
//! A driver waits for a turn and what it begins with, works, takes what came meanwhile before each further step, and
//! closes it when nothing is left.
//!
//! ```
//! # use dsh_agent::{AgentRegistry, AgentSpec, WakePolicy};
//! # use dsh_scope::Scope;
//! # use dsh_session::{Message, SessionId};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = Scope::root("harness");
//! # let spec = AgentSpec { id: SessionId::new("s-1"), cwd: None, within: root.clone() };
//! # let handle = AgentRegistry::new().create(spec)?;
//! let agent = handle.agent().clone();
//! let mut driver = agent.drive(WakePolicy::default())?;
//! let message = Message::user("hello");
//! agent.follow_up(message.clone())?;
//!
//! let (mut turn, opening) = driver.next_turn().await.expect("the agent lives");
//! assert_eq!(opening.messages(), [message]);
//! opening.commit(); // it is in the log
//! // ... the model answers, and has nothing more to say:
//! assert!(turn.claim_or_close().is_none());
//! drop(turn);
//! agent.when_idle().await;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use dsh_session::{Message, TurnTrigger};
use tokio_util::sync::CancellationToken;

use crate::inbox::desk::{AgentStatus, Stop};
use crate::inbox::{InboxLease, Shared};
use crate::{Agent, DriveError, WakePolicy};

/// The seat of the one that runs an agent's turns. Dropping it leaves the agent undriven; its disposal waits for that.
pub struct Driver {
    agent: Arc<Agent>,
}

/// An open turn. Dropping it closes it.
pub struct Turn<'a> {
    agent: &'a Arc<Agent>,
    token: CancellationToken,
    trigger: TurnTrigger,
}

/// What a turn takes at one point: notices, then messages. Dropping it uncommitted shows the notices again; the
/// messages are gone.
#[must_use = "dropping it uncommitted shows its notices again"]
#[derive(Debug)]
pub struct Claim {
    notices: InboxLease,
    all: Vec<Message>,
}

impl Driver {
    pub(crate) fn seat(agent: &Arc<Agent>, policy: WakePolicy) -> Result<Self, DriveError> {
        let mut state = agent.shared().lock();
        if state.desk.status() == AgentStatus::Disposed {
            return Err(DriveError::Disposed(agent.disposed()));
        }
        if !state.seat(policy) {
            return Err(DriveError::Driven(agent.id().clone()));
        }
        drop(state);
        agent.shared().tick();
        Ok(Self { agent: agent.clone() })
    }

    /// Waits until something asks for a turn, opens it, and takes in the same moment what it begins with: every notice,
    /// what was to join a turn, and one message that wants its own; never nothing. `None` once the agent is being
    /// disposed.
    ///
    /// # Cancel safety
    ///
    /// Safe: a dropped call has opened and taken nothing.
    pub async fn next_turn(&mut self) -> Option<(Turn<'_>, Claim)> {
        let disposed = self.agent.scope().token();
        let token = disposed.child_token();
        let shared = self.agent.shared();
        let opened = shared.until(|state| {
            if state.desk.status() == AgentStatus::Disposed {
                return Some(None);
            }
            let (trigger, messages) = state.open_turn(&token)?;
            let claim = Claim::new(InboxLease::of(shared, state), messages);
            Some(Some((trigger, claim)))
        });
        let (trigger, opening) = tokio::select! {
            biased;
            () = disposed.cancelled() => None,
            opened = opened => opened,
        }?;
        let turn = Turn {
            agent: &self.agent,
            token,
            trigger,
        };
        Some((turn, opening))
    }
}

impl Turn<'_> {
    /// What opened it.
    pub fn trigger(&self) -> TurnTrigger {
        self.trigger
    }

    /// Cancelled when the turn has to end; [`stop`](Self::stop) says why.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why the turn has to end, if it has to. Disposal comes before a cancellation.
    pub fn stop(&self) -> Option<Stop> {
        if self.agent.scope().token().is_cancelled() {
            return Some(Stop::Disposed);
        }
        self.agent.shared().lock().desk.stop()
    }

    /// Takes what came for the next step; it may be nothing.
    pub fn claim(&mut self) -> Claim {
        let shared = self.agent.shared();
        let mut state = shared.lock();
        let messages = state.take_step();
        Claim::new(InboxLease::of(shared, &mut state), messages)
    }

    /// Whether the agent has [concluded](Agent::conclude): the turn is to be closed after the step it is in.
    pub fn is_concluded(&self) -> bool {
        self.agent.shared().lock().desk.is_concluded()
    }

    /// Takes what came for the next step or, if nothing did or the agent has concluded, ends the turn in the same moment: what comes from now on
    /// opens another one, and a cancellation comes too late. The agent is at work until this is dropped, so the driver
    /// can finish what it writes; there is nothing else left to do with it.
    pub fn claim_or_close(&mut self) -> Option<Claim> {
        let shared = self.agent.shared();
        let mut state = shared.lock();
        if state.desk.is_concluded() {
            state.desk.end_turn();
            return None;
        }
        let messages = state.take_step();
        let claim = Claim::new(InboxLease::of(shared, &mut state), messages);
        if claim.is_empty() {
            state.desk.end_turn();
        }
        // Before the claim can be dropped, which takes the lock.
        drop(state);
        (!claim.is_empty()).then_some(claim)
    }
}

impl Claim {
    fn new(notices: InboxLease, messages: Vec<Message>) -> Self {
        let mut all = notices.messages().to_vec();
        all.extend(messages);
        Self { notices, all }
    }

    /// What the model is to be told, in this order.
    pub fn messages(&self) -> &[Message] {
        &self.all
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The model is told: the notices are gone for good.
    pub fn commit(self) {
        self.notices.commit();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let shared: &Arc<Shared> = self.agent.shared();
        shared.lock().close_turn();
        shared.tick();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.agent.shared().lock().desk.leave();
        self.agent.shared().tick();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("agent", &self.agent).finish()
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("agent", &self.agent)
            .field("trigger", &self.trigger)
            .finish_non_exhaustive()
    }
}
