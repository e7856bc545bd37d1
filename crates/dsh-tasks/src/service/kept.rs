//! What the registry keeps of a task beside its record, and the clock.

use std::{
    sync::{Arc, Mutex, OnceLock, Weak},
    time::{SystemTime, UNIX_EPOCH},
};

use dsh_agent::{Agent, NoticeKey};
use dsh_scope::contain;
use tokio::{sync::Notify, time::Instant};

use crate::{
    id::TaskId,
    outcome::{CancelRequest, Survivor},
    snapshot::TaskSnapshot,
    work::Hooks,
};

pub(super) type Kept = Arc<TaskParts>;

pub(super) struct TaskParts {
    pub(super) hooks: Hooks,
    /// The exact owner. Weak: a record keeps no agent alive.
    pub(super) owner: Option<Weak<Agent>>,
    /// Which registry of this process it is of.
    registry: u64,
    /// The id of its record, where that is not the one it is called by.
    key: Option<TaskId>,
    /// For those who wait.
    pub(super) ended: EndLatch,
    /// Held while the output source is read.
    pub(super) reading: Mutex<()>,
}

/// The end of a task, for those who wait for it: a `watch` would do, and take a quarter of what an idle task does.
pub(super) struct EndLatch {
    /// Set before `come` is said.
    snapshot: OnceLock<Arc<TaskSnapshot>>,
    come: Notify,
}

/// Wall-clock milliseconds that never go back.
pub(super) struct Clock {
    epoch_ms: u64,
    start: Instant,
}

impl TaskParts {
    pub(super) fn new(hooks: Hooks, owner: Option<&Arc<Agent>>, registry: u64) -> Kept {
        Arc::new(Self {
            hooks,
            owner: owner.map(Arc::downgrade),
            registry,
            key: None,
            ended: EndLatch::new(),
            reading: Mutex::new(()),
        })
    }

    /// Of a task that ended before there was this registry: there is nothing to cancel and nothing to read.
    pub(super) fn ended(key: &TaskId, owner: &Arc<Agent>, registry: u64) -> Kept {
        let hooks = Hooks {
            cancel: Box::new(|_| Ok(())),
            output: None,
            live_detail: None,
            survivors: None,
        };
        Arc::new(Self {
            hooks,
            owner: Some(Arc::downgrade(owner)),
            registry,
            key: Some(key.clone()),
            ended: EndLatch::new(),
            reading: Mutex::new(()),
        })
    }

    /// The id of its record.
    pub(super) fn key<'a>(&'a self, name: &'a TaskId) -> &'a TaskId {
        self.key.as_ref().unwrap_or(name)
    }

    pub(super) fn owner(&self) -> Option<Arc<Agent>> {
        self.owner.as_ref()?.upgrade()
    }

    /// The key of its notice in its owner's inbox. An agent may outlive a registry, whose successor gives the same ids.
    pub(super) fn notice_key(&self, id: &TaskId) -> NoticeKey {
        NoticeKey::new(format!("tasks {}: {id}", self.registry))
    }

    /// Adds to a snapshot what only the producer knows. Calls its hooks.
    pub(super) fn complete(&self, mut snapshot: TaskSnapshot) -> TaskSnapshot {
        if let Some(output) = &self.hooks.output {
            snapshot.bytes = contain(|| output.len()).unwrap_or_else(|panicked| {
                tracing::error!("tasks: the output of {} panicked: {panicked}", snapshot.id);
                0
            });
        }
        if !snapshot.status.is_terminal() {
            snapshot.live_detail = self.live_detail();
        }
        snapshot
    }

    /// The same for an end, which most often has nothing to add to it.
    pub(super) fn complete_end(&self, snapshot: Arc<TaskSnapshot>) -> Arc<TaskSnapshot> {
        match self.hooks.output {
            Some(_) => Arc::new(self.complete(Arc::unwrap_or_clone(snapshot))),
            None => snapshot,
        }
    }

    pub(super) fn live_detail(&self) -> Option<String> {
        let detail = self.hooks.live_detail.as_ref()?;
        contain(detail).unwrap_or_else(|panicked| {
            tracing::error!("tasks: a live detail panicked: {panicked}");
            None
        })
    }

    pub(super) fn survivors(&self) -> Vec<Survivor> {
        let Some(survivors) = &self.hooks.survivors else {
            return Vec::new();
        };
        contain(survivors).unwrap_or_else(|panicked| {
            tracing::error!("tasks: a survivors hook panicked: {panicked}");
            Vec::new()
        })
    }

    /// Calls the cancel hook; its error or panic as text.
    pub(super) fn cancel(&self, request: &CancelRequest) -> Result<(), String> {
        match contain(|| (self.hooks.cancel)(request)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(panicked) => Err(panicked.to_string()),
        }
    }
}

impl EndLatch {
    fn new() -> Self {
        Self {
            snapshot: OnceLock::new(),
            come: Notify::new(),
        }
    }

    /// Releases who waits, now and later. The first end counts.
    pub(super) fn come(&self, snapshot: Arc<TaskSnapshot>) {
        // Set twice, it is the first one.
        let _ = self.snapshot.set(snapshot);
        self.come.notify_waiters();
    }

    /// Waits for the end; dropping it ends only the wait.
    pub(super) async fn wait(&self) {
        // Made before the look: it hears what is said after that, polled or not.
        let come = self.come.notified();
        if self.snapshot.get().is_none() {
            come.await;
        }
    }

    /// How the task ended, if it has.
    pub(super) fn snapshot(&self) -> Option<Arc<TaskSnapshot>> {
        self.snapshot.get().cloned()
    }
}

impl Clock {
    pub(super) fn start() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            epoch_ms: now.map_or(0, |since| since.as_millis() as u64),
            start: Instant::now(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.epoch_ms + self.start.elapsed().as_millis() as u64
    }
}
