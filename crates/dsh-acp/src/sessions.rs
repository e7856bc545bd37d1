//! The open sessions of a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent_loop::LedAgent;
use dsh_scope::Scope;
use dsh_session::SessionId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::prompt::PromptSlot;

/// How many sessions may be open at once.
pub(crate) const MAX_OPEN: usize = 256;

/// The open sessions, by id.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionId, Arc<Open>>>);

/// One open session.
pub(crate) struct Open {
    pub(crate) led: LedAgent,
    pub(crate) prompt: Arc<PromptSlot>,
    /// Lets its feed finish.
    pub(crate) finish: CancellationToken,
    /// What works for it here. All of it has a handle to the session, which keeps its file.
    pub(crate) running: TaskTracker,
    /// That of the connection.
    pub(crate) scope: Scope,
}

impl Sessions {
    pub(crate) fn get(&self, id: &SessionId) -> Option<Arc<Open>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().len() >= MAX_OPEN
    }

    /// Gives the session back when there are as many as there may be.
    pub(crate) fn insert(&self, open: Arc<Open>) -> Result<(), Arc<Open>> {
        let mut sessions = self.lock();
        if sessions.len() >= MAX_OPEN {
            return Err(open);
        }
        sessions.insert(open.led.agent().id().clone(), open);
        Ok(())
    }

    pub(crate) fn remove(&self, id: &SessionId) -> Option<Arc<Open>> {
        self.lock().remove(id)
    }

    pub(crate) fn remove_all(&self) -> Vec<Arc<Open>> {
        self.lock().drain().map(|(_, open)| open).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Open>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    pub(crate) fn spawn(&self, label: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        // Refused only by a connection that is over.
        drop(self.scope.spawn(label, work));
    }

    /// Ends the session: its turn, its tasks, then what works for it here. What that still had to say is sent.
    pub(crate) async fn close(&self) {
        if let Err(error) = self.led.dispose().await {
            tracing::error!("acp: {error}");
        }
        self.finish.cancel();
        self.running.close();
        self.running.wait().await;
    }
}
