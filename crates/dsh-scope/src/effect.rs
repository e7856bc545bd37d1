//! The handles to single entries of a scope.

use std::{fmt, sync::Weak};

use crate::{
    entry::Ended,
    lineage::{Id, Lineage},
    state::Core,
};

/// Ends one effect before its scope does. Dropping it does nothing: the effect stays.
///
/// The scope owns the disposer; this refers to it.
pub struct EffectHandle {
    pub(crate) core: Weak<Core>,
    pub(crate) id: Id,
    pub(crate) ended: Ended,
}

/// A task that was spawned on a scope. Dropping it does nothing: the task goes on.
pub struct TrackedTask {
    pub(crate) id: Id,
    pub(crate) ended: Ended,
}

impl EffectHandle {
    /// Runs the disposer, or awaits the run in flight; returns at once when it has ended.
    ///
    /// When this returns the disposer has ended, also if it panicked (which is logged with the label). Called from
    /// inside that disposer it returns at once, since it cannot wait for itself.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// The disposer runs in a task of its own: dropping this future only stops waiting.
    pub async fn dispose(&self) {
        if let Some(core) = self.core.upgrade() {
            core.start(self.id);
        }
        wait_from_outside(self.id, &self.ended).await;
    }
}

impl TrackedTask {
    /// Whether the task has ended, however it did.
    pub fn is_finished(&self) -> bool {
        self.ended.is_over()
    }

    /// Awaits the end of the task, also if it panicked. Called from inside that task it returns at once.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn finished(&self) {
        wait_from_outside(self.id, &self.ended).await;
    }
}

async fn wait_from_outside(id: Id, ended: &Ended) {
    if !Lineage::current().contains(id) {
        ended.wait().await;
    }
}

impl fmt::Debug for EffectHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EffectHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for TrackedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedTask")
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
