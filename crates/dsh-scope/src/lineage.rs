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
pub(crate) struct Lineage {
    ids: Arc<[Id]>,
    /// One more, kept beside them: every task has its own, and shares the rest with all of its scope.
    own: Option<Id>,
}

impl Id {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Lineage {
    pub(crate) fn empty() -> Self {
        std::iter::empty().collect()
    }

    /// What waits for the task that calls this; nothing outside of tracked work.
    pub(crate) fn current() -> Self {
        WAITED_FOR_BY
            .try_with(Clone::clone)
            .unwrap_or_else(|_| Self::empty())
    }

    pub(crate) fn contains(&self, id: Id) -> bool {
        self.own == Some(id) || self.ids.contains(&id)
    }

    /// That of a scope within this one.
    pub(crate) fn with(&self, id: Id) -> Self {
        self.all().chain([id]).collect()
    }

    /// That of a task or disposer of the scope that this is of.
    pub(crate) fn of_entry(&self, id: Id) -> Self {
        match self.own {
            None => Self {
                ids: Arc::clone(&self.ids),
                own: Some(id),
            },
            Some(_) => self.with(id),
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let added = other.all().filter(|&id| !self.contains(id));
        self.all().chain(added).collect()
    }

    fn all(&self) -> impl Iterator<Item = Id> {
        self.ids.iter().copied().chain(self.own)
    }

    /// Runs `work` as work that these wait for.
    pub(crate) fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        WAITED_FOR_BY.scope(self, work)
    }
}

impl FromIterator<Id> for Lineage {
    fn from_iter<I: IntoIterator<Item = Id>>(ids: I) -> Self {
        Self {
            ids: ids.into_iter().collect(),
            own: None,
        }
    }
}
