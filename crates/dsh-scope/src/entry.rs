//! What a scope owes, and how its end is seen.

use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;

use crate::{launch::BoxFuture, lineage::Id, state::Core};

/// What a scope owes: a disposer or the end of a task.
pub(crate) struct Entry {
    pub(crate) label: Arc<str>,
    pub(crate) work: Work,
    pub(crate) ended: Ended,
}

pub(crate) enum Work {
    /// A disposer nobody has asked for yet. Boxed: most entries are tasks, which need no room for one.
    Waiting(Box<(BoxFuture, EndGuard)>),
    /// A disposer in flight.
    Disposing,
    /// A spawned task.
    Task,
}

/// Waits until an entry's disposer or task has ended: the guard's drop says so.
///
/// A semaphore that never has a permit: all that can happen to who waits for one is that it is closed. There is one for
/// each entry, and it is a tenth of a `watch`.
#[derive(Clone)]
pub(crate) struct Ended(Arc<Semaphore>);

/// Held by whatever runs an entry's work. However that ends, also by a shutdown of the runtime, the drop takes the
/// entry out and then releases those who wait for it.
pub(crate) struct EndGuard {
    core: Weak<Core>,
    id: Id,
    // A field's drop comes after the body of the guard's: who sees the end finds the entry gone.
    _end: End,
}

/// Says so, by its drop.
struct End(Arc<Semaphore>);

impl Ended {
    /// # Cancel safety
    ///
    /// Only waits.
    pub(crate) async fn wait(&self) {
        // There are no permits: this is the error that it was closed.
        let _ = self.0.acquire().await;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

impl EndGuard {
    pub(crate) fn new(core: Weak<Core>, id: Id) -> (Self, Ended) {
        let ended = Arc::new(Semaphore::new(0));
        let end = End(Arc::clone(&ended));
        (Self { core, id, _end: end }, Ended(ended))
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.remove(self.id);
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
    }
}
