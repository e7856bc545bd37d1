//! The state behind a scope's handles.
//!
//! # Invariants
//!
//! 1. An entry leaves the map when its disposer or task has ended, and a child's also when the child was closed on its
//!    own: what is in the map is what the scope still owes.
//! 2. A disposer is taken out of its entry under the lock, so it runs at most once, whoever asks.
//! 3. Once `closing` is set no entry is added, so the closing loop ends.
//! 4. `closing` is set after the token was cancelled: who sees a closing scope sees a cancelled token.
//! 5. An entry is removed before its `ended` is closed: who awaited an end finds nothing left of it.
//! 6. Handles, runners and children refer to a core weakly. Only [`Scope`](crate::Scope) handles, the closing task and
//!    a child's entry in its parent keep one alive.
//!
//! One lock per core. No lock of another core is taken, no foreign code runs and nothing is awaited under it; boxed
//! disposers are dropped after it was released.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    entry::{EndGuard, Ended, Entry, Work},
    launch::{BoxFuture, require_runtime, run, spawn},
    lineage::{Id, Lineage},
};

pub(crate) struct Core {
    pub(crate) id: Id,
    pub(crate) name: Arc<str>,
    pub(crate) token: CancellationToken,
    /// This scope and its ancestors.
    pub(crate) lineage: Lineage,
    /// The parent and the entry in it that closes this scope.
    kept: OnceLock<(Weak<Core>, Id)>,
    state: Mutex<State>,
}

struct State {
    entries: BTreeMap<Id, Entry>,
    /// Turns true when the closing is over.
    closing: Option<watch::Receiver<bool>>,
}

impl Core {
    pub(crate) fn new(name: Arc<str>, token: CancellationToken, ancestors: &Lineage) -> Arc<Self> {
        let id = Id::next();
        let state = State {
            entries: BTreeMap::new(),
            closing: None,
        };
        let lineage = ancestors.with(id);
        Arc::new(Self {
            id,
            name,
            token,
            lineage,
            kept: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    /// Remembers the parent's entry, to take it out when this scope was closed on its own.
    pub(crate) fn kept_as(&self, parent: Weak<Core>, id: Id) {
        // A scope is made a child once, by the code that made it.
        let _ = self.kept.set((parent, id));
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.lock().closing.is_some()
    }

    /// Adds a disposer, or hands it back.
    pub(crate) fn register<D>(
        self: &Arc<Self>,
        label: Arc<str>,
        disposer: D,
        boxed: impl FnOnce(D) -> BoxFuture,
    ) -> Result<(Id, Ended), D> {
        self.insert(label, disposer, |disposer, guard| {
            Work::Waiting(Box::new((boxed(disposer), guard)))
        })
    }

    /// Starts a task and adds it, or hands it back.
    pub(crate) fn launch<F>(self: &Arc<Self>, label: Arc<str>, task: F) -> Result<(Id, Ended), F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        require_runtime();
        let mut held = None;
        let (id, ended) = self.insert(label.clone(), task, |task, guard| {
            held = Some((task, guard));
            Work::Task
        })?;
        if let Some((task, guard)) = held {
            let waited_for_by = self.lineage.of_entry(id);
            run(waited_for_by, "task", self.name.clone(), label, guard, task);
        }
        Ok((id, ended))
    }

    /// Starts the disposer of an entry unless somebody has already.
    pub(crate) fn start(&self, id: Id) {
        require_runtime();
        let (label, disposer, guard) = {
            let mut state = self.lock();
            let Some(entry) = state.entries.get_mut(&id) else {
                return;
            };
            match std::mem::replace(&mut entry.work, Work::Disposing) {
                Work::Waiting(waiting) => {
                    let (disposer, guard) = *waiting;
                    (entry.label.clone(), disposer, guard)
                }
                taken => {
                    entry.work = taken;
                    return;
                }
            }
        };
        // What waits for the caller waits for this disposer, too.
        let waited_for_by = Lineage::current().union(&self.lineage).of_entry(id);
        run(
            waited_for_by,
            "disposer",
            self.name.clone(),
            label,
            guard,
            disposer,
        );
    }

    /// Starts the closing unless somebody has already, and returns where its end shows.
    pub(crate) fn close(self: &Arc<Self>) -> watch::Receiver<bool> {
        require_runtime();
        self.token.cancel();
        let (over, closing) = watch::channel(false);
        {
            let mut state = self.lock();
            if let Some(closing) = &state.closing {
                return closing.clone();
            }
            state.closing = Some(closing.clone());
        }
        let core = self.clone();
        let waited_for_by = Lineage::current().union(&self.lineage);
        spawn(waited_for_by, async move {
            core.drain().await;
            core.leave_parent();
            over.send_replace(true);
        });
        closing
    }

    async fn drain(&self) {
        while let Some((id, ended)) = self.newest() {
            self.start(id);
            ended.wait().await;
        }
    }

    fn newest(&self) -> Option<(Id, Ended)> {
        self.lock()
            .entries
            .last_key_value()
            .map(|(&id, entry)| (id, entry.ended.clone()))
    }

    fn leave_parent(&self) {
        if let Some((parent, id)) = self.kept.get()
            && let Some(parent) = parent.upgrade()
        {
            parent.remove(*id);
        }
    }

    /// Forgets an entry, whatever it is doing.
    pub(crate) fn remove(&self, id: Id) {
        let removed = self.lock().entries.remove(&id);
        drop(removed);
    }

    fn insert<T>(
        self: &Arc<Self>,
        label: Arc<str>,
        item: T,
        work: impl FnOnce(T, EndGuard) -> Work,
    ) -> Result<(Id, Ended), T> {
        let mut state = self.lock();
        if state.closing.is_some() {
            return Err(item);
        }
        // Taken under the lock, so the order of ids is the order of registration.
        let id = Id::next();
        let (guard, ended) = EndGuard::new(Arc::downgrade(self), id);
        let entry = Entry {
            label,
            work: work(item, guard),
            ended: ended.clone(),
        };
        state.entries.insert(id, entry);
        Ok((id, ended))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.token.cancel();
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for entry in state.entries.values() {
            let what = match entry.work {
                Work::Waiting(_) => "effect never disposed",
                Work::Task => "task not awaited",
                Work::Disposing => continue,
            };
            tracing::warn!(
                scope = &*self.name,
                label = &*entry.label,
                "scope dropped without being closed: {what}"
            );
        }
    }
}
