//! What a scope owes, and how its end is seen.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use crate::{launch::BoxFuture, lineage::Id, state::Core};

/// What a scope owes: a disposer or the end of a task.
pub(crate) struct Entry {
    pub(crate) label: Arc<str>,
    pub(crate) work: Work,
    pub(crate) ended: Ended,
}

pub(crate) enum Work {
    /// A disposer nobody has asked for yet.
    Waiting(BoxFuture, EndGuard),
    /// A disposer in flight.
    Disposing,
    /// A spawned task.
    Task,
}

/// Waits until an entry's disposer or task has ended: the guard's drop says so.
#[derive(Clone)]
pub(crate) struct Ended(watch::Receiver<()>);

/// Held by whatever runs an entry's work. However that ends, also by a shutdown of the runtime, the drop takes the
/// entry out and then releases those who wait for it.
pub(crate) struct EndGuard {
    core: Weak<Core>,
    id: Id,
    // A field's drop comes after the body of the guard's: who sees the end finds the entry gone.
    _ended: watch::Sender<()>,
}

impl Ended {
    /// # Cancel safety
    ///
    /// Only waits.
    pub(crate) async fn wait(&self) {
        let mut receiver = self.0.clone();
        // Nothing is ever sent: the only thing that can happen is the sender's drop.
        while receiver.changed().await.is_ok() {}
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

impl EndGuard {
    pub(crate) fn new(core: Weak<Core>, id: Id) -> (Self, Ended) {
        let (sender, receiver) = watch::channel(());
        (
            Self {
                core,
                id,
                _ended: sender,
            },
            Ended(receiver),
        )
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.remove(self.id);
        }
    }
}
