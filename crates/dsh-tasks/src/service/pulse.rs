//! Who is told that the core has changed.

use tokio::sync::{Notify, watch};

use crate::core::Left;

/// Ticks when something may have to be dispatched, or a disposal may go on.
///
/// It ticks with every start and every end, so a tick must cost next to nothing where nobody waits for it.
pub(super) struct Pulse {
    /// For the one dispatcher. A tick that it did not wait for is kept.
    dispatcher: Notify,
    /// For disposals, of which there are few.
    disposals: watch::Sender<()>,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self {
            dispatcher: Notify::new(),
            disposals: watch::Sender::new(()),
        }
    }

    /// The core has changed: called after its lock was released.
    ///
    /// A disposal subscribes, then looks at the core. If it looked before the change, the core's lock, which both took, has
    /// made its subscription visible here; if it looked after the change, it saw it.
    pub(super) fn tick(&self, left: Left) {
        if left == Left::Effects {
            self.dispatcher.notify_one();
        }
        if self.disposals.receiver_count() > 0 {
            self.disposals.send_replace(());
        }
    }

    /// Waits until there is something to dispatch. Whoever calls this has taken all effects there were.
    ///
    /// # Cancel safety
    ///
    /// No tick is lost.
    pub(super) async fn effects(&self) {
        self.dispatcher.notified().await;
    }

    /// Waits until `fact` holds; it is looked at after every tick.
    pub(super) async fn until(&self, fact: impl Fn() -> bool) {
        let mut ticks = self.disposals.subscribe();
        while !fact() {
            // The sender lives as long as this.
            let _ = ticks.changed().await;
        }
    }
}
