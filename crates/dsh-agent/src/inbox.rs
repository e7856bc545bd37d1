//! News for an agent, and who may tell it.
//!
//! A notice is queued until somebody **leases** it, hands it to the model and **commits**. Whoever is about to tell the
//! same thing on another way **holds** its key first: the notice stays out of sight, and is **retracted** when the other
//! way was taken or shows up again when it was not.
//!
//! # Invariants
//!
//! 1. An accepted notice is in exactly one place: queued, in one lease, told, or retracted.
//! 2. Notices are leased in the order of their arrival; one that comes back takes its old place.
//! 3. A notice under a hold is in no new lease. A lease that took it before may still commit it.
//! 4. A retraction concerns one notice. If none with the key is here, and none has come since the first of the holds
//!    that are in force, a tombstone waits for it and refuses it; only a tombstone or a live hold keeps a key known.
//!
//! One lock, which is also that of the agent's status and of what it was asked (the desk): whether an agent is idle is
//! decided in the same moment as whether anything waits for it. Wakers run after it was released, so two wake-ups may
//! overtake each other: they carry no content, and who is woken looks again.

pub(crate) mod desk;
mod queue;
mod raii;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dsh_session::Message;
use tokio::sync::watch;

pub use raii::{InboxLease, NoticeHold};

use desk::Desk;
use queue::Queue;

/// News an agent has not been told yet. It outlives everything but its agent, and needs no runtime.
pub struct Inbox {
    shared: Arc<Shared>,
}

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// By which it can be held and retracted.
    pub key: NoticeKey,
    /// What the model is told.
    pub message: Message,
}

/// Names one notice, before and after it arrives: the sender chooses it, once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NoticeKey(Arc<str>);

pub(crate) struct Shared {
    state: Mutex<State>,
    /// Ticks when notices become visible, and when the desk changes.
    changed: watch::Sender<()>,
}

/// Everything under the lock.
#[derive(Default)]
pub(crate) struct State {
    notices: Queue,
    pub(crate) desk: Desk,
}

/// Whether an operation made a notice visible that was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Something,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::default(),
                changed: watch::Sender::new(()),
            }),
        }
    }

    /// Queues a notice behind those that are here; a tombstone for its key refuses it, and is used up.
    pub fn inject(&self, notice: Notice) {
        self.shared.apply(|queue| queue.inject(notice));
    }

    /// Hides the notice with this key, whether it is here or still to come, as long as the hold lives.
    ///
    /// A lease that has the notice already is not affected: it may commit it. If it does not, the notice comes back
    /// under the hold. Several holds on one key are in force until the last one ends.
    ///
    /// ```
    /// # use dsh_agent::{AgentRegistry, AgentSpec, Notice, NoticeKey};
    /// # use dsh_session::{Message, SessionId};
    /// # let root = dsh_scope::Scope::root("doc");
    /// # let spec = AgentSpec { id: SessionId::new("s-1"), cwd: None, within: root.clone() };
    /// # let handle = AgentRegistry::new().create(spec)?;
    /// # let inbox = handle.agent().inbox();
    /// # let notice = Notice { key: NoticeKey::new("build"), message: Message::user("built") };
    /// # let key = notice.key.clone();
    /// let answering = inbox.hold(&key); // somebody is about to answer with the same news
    /// inbox.inject(notice.clone());
    /// assert!(inbox.lease().is_empty());
    /// drop(answering); // the answer was not sent
    /// assert_eq!(inbox.pending(), 1);
    ///
    /// inbox.hold(&key).retract(); // the next one was
    /// assert_eq!(inbox.pending(), 0);
    /// # Ok::<(), dsh_agent::AgentError>(())
    /// ```
    pub fn hold(&self, key: &NoticeKey) -> NoticeHold {
        self.shared.lock().notices.hold(key);
        NoticeHold::new(self.shared.clone(), key.clone())
    }

    /// Says that the notice with this key will never come: its tombstone is dropped, and holds in force leave none.
    pub fn forget(&self, key: &NoticeKey) {
        self.shared.lock().notices.forget(key);
    }

    /// Takes every visible notice, in order. An empty lease is a fine lease.
    pub fn lease(&self) -> InboxLease {
        InboxLease::of(&self.shared, &mut self.shared.lock())
    }

    /// How many notices a lease would take now.
    pub fn pending(&self) -> usize {
        self.shared.lock().notices.visible()
    }

    /// Waits until a notice is visible; returns at once if one is. It may be gone again when the caller looks.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn arrived(&self) {
        self.shared
            .until(|state| (state.notices.visible() > 0).then_some(()))
            .await;
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl NoticeKey {
    /// The key with this text.
    pub fn new(key: impl Into<Arc<str>>) -> Self {
        Self(key.into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Shared {
    fn apply(&self, operation: impl FnOnce(&mut Queue) -> Shown) {
        let shown = operation(&mut self.lock().notices);
        match shown {
            Shown::Something => self.tick(),
            Shown::Nothing => {}
        }
    }

    /// Waits until the state has what is looked for.
    pub(crate) async fn until<T>(&self, look: impl Fn(&mut State) -> Option<T>) -> T {
        // Subscribed before looking. A change by another thread either happens before the look, which sees it, or its
        // tick comes after the subscription.
        let mut changed = self.changed.subscribe();
        loop {
            let seen = look(&mut self.lock());
            if let Some(seen) = seen {
                return seen;
            }
            // The sender lives as long as this; it cannot be gone.
            let _ = changed.changed().await;
        }
    }

    /// To be called after every change of the desk, without the lock.
    pub(crate) fn tick(&self) {
        self.changed.send_replace(());
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for NoticeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("pending", &self.pending())
            .finish_non_exhaustive()
    }
}
