//! One live agent and its identity.

use std::{
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use dsh_scope::Scope;
use dsh_session::{Message, Session, SessionId};

use crate::inbox::Shared;
use crate::{AgentDisposed, AgentStatus, DriveError, Driver, Inbox, WakePolicy};

/// One live agent. It is shared as an `Arc`; having one gives no right to end it, see
/// [`AgentHandle`](crate::AgentHandle).
pub struct Agent {
    instance: InstanceId,
    session: Session,
    scope: Scope,
    inbox: Inbox,
}

/// Identity of one live agent: never reused in the life of the process, also when the session id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(u64);

impl Agent {
    pub(crate) fn new(session: Session, scope: Scope) -> Self {
        Self {
            instance: InstanceId::next(),
            session,
            scope,
            inbox: Inbox::new(),
        }
    }

    /// The id of its session, which is its own.
    pub fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Which agent this is, among all that ever had its id.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Its conversation.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Owns what lives and ends with it.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What it has not been told yet.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The directory its tools work in.
    pub fn cwd(&self) -> Option<&Path> {
        self.session.cwd()
    }

    /// Whether it is at work.
    pub fn status(&self) -> AgentStatus {
        self.shared().lock().desk.status()
    }

    /// Asks for a turn of its own for a message; messages are served one turn each, in order.
    ///
    /// # Errors
    ///
    /// [`AgentDisposed`] once its disposal has begun, or it has [concluded](Self::conclude).
    pub fn follow_up(&self, message: Message) -> Result<(), AgentDisposed> {
        self.ask(|state| state.desk.ask_next_turn(message))
    }

    /// Says something to the open turn, before its next step; if none is open, asks for one.
    ///
    /// # Errors
    ///
    /// [`AgentDisposed`] once its disposal has begun, or it has [concluded](Self::conclude).
    pub fn steer(&self, message: Message) -> Result<(), AgentDisposed> {
        self.ask(|state| state.desk.ask_next_step(message))
    }

    /// Stops the open turn and drops the messages that wait; notices stay, and the background tasks of the agent go on.
    /// Without effect when nothing is open or waits. The first reason counts.
    pub fn cancel(&self, reason: &str) {
        let open = self.shared().lock().desk.cancel(reason);
        if let Some(token) = open {
            token.cancel();
        }
        self.shared().tick();
    }

    /// Has done what it is for: the open turn takes no further step, no other one is opened, and what waits is dropped. Calls
    /// that run go on.
    pub fn conclude(&self) {
        self.shared().lock().desk.conclude();
        self.shared().tick();
    }

    /// Waits until no turn is open and nothing that waits would open one. Of a disposed agent, until its driver has
    /// left.
    ///
    /// A message that waits for an agent without a driver waits for ever, and so does this.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn when_idle(&self) {
        self.shared().until(|state| state.at_rest().then_some(())).await;
    }

    /// Takes the messages that were accepted and that no turn will take any more, in the order in which turns would have:
    /// those of a disposed agent, for whoever keeps them. Nothing before its disposal has begun.
    pub fn untaken(&self) -> Vec<Message> {
        self.shared().lock().desk.untaken()
    }

    /// Takes the driver's seat. Notices that wait already open no turn; they go into the first one that is opened.
    ///
    /// # Errors
    ///
    /// [`DriveError`] when it is taken, or the agent is being disposed.
    pub fn drive(self: &Arc<Self>, policy: WakePolicy) -> Result<Driver, DriveError> {
        Driver::seat(self, policy)
    }

    /// Takes nothing from now on, stops the open turn, and waits until the driver has left.
    pub(crate) async fn retire(&self) {
        let open = self.shared().lock().desk.retire();
        if let Some(token) = open {
            token.cancel();
        }
        self.shared().tick();
        self.when_idle().await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.inbox.shared()
    }

    pub(crate) fn disposed(&self) -> AgentDisposed {
        AgentDisposed {
            id: self.id().clone(),
        }
    }

    fn ask(&self, ask: impl FnOnce(&mut crate::inbox::State)) -> Result<(), AgentDisposed> {
        let mut state = self.shared().lock();
        if !state.desk.takes() {
            return Err(self.disposed());
        }
        ask(&mut state);
        drop(state);
        self.shared().tick();
        Ok(())
    }
}

impl InstanceId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", self.id())
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}
