//! Who waits for whom: the ids that keep a closing from waiting for itself.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

tokio::task_local! {
    /// Everything that waits for the running task: scopes it belongs to, disposals it is part of.
    static WAITED_FOR_BY: Lineage;
}

/// Identity of a scope or an effect: never reused in the life of the process, ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(u64);

/// A set of ids: of a scope, itself and its ancestors; of a running task, all that waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Lineage(Arc<[Id]>);

impl Id {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Lineage {
    pub(crate) fn empty() -> Self {
        Self(Arc::default())
    }

    /// What waits for the task that calls this; nothing outside of tracked work.
    pub(crate) fn current() -> Self {
        WAITED_FOR_BY
            .try_with(Clone::clone)
            .unwrap_or_else(|_| Self::empty())
    }

    pub(crate) fn contains(&self, id: Id) -> bool {
        self.0.contains(&id)
    }

    pub(crate) fn with(&self, id: Id) -> Self {
        Self(self.0.iter().copied().chain([id]).collect())
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let added = other.0.iter().copied().filter(|&id| !self.contains(id));
        Self(self.0.iter().copied().chain(added).collect())
    }

    /// Runs `work` as work that these wait for.
    pub(crate) fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        WAITED_FOR_BY.scope(self, work)
    }
}
