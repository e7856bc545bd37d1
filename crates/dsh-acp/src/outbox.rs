//! What may wait to be written, and what is let in meanwhile.
//!
//! The SDK queues without bounds in both directions. So everything that adds to its queues takes a place first, and the
//! one who writes gives it back: an editor that does not read holds up whoever has something for it, and is not read
//! any more itself.

use std::sync::Arc;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{SessionId, SessionNotification, SessionUpdate};
use tokio::sync::Semaphore;

/// How many updates may wait to be written.
const UPDATES: usize = 64;

/// How many requests of the editor may be unanswered, or their answers unread. More than sessions that can be open, each
/// of which has one prompt: other requests take no time.
const REQUESTS: usize = 1024;

/// The places. Cloning gives another handle to the same ones.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    updates: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

/// Sends a session's updates.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    session: SessionId,
    editor: ConnectionTo<Client>,
    places: Places,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self {
            updates: Arc::new(Semaphore::new(UPDATES)),
            requests: Arc::new(Semaphore::new(REQUESTS)),
        }
    }

    /// Waits until one more request may be let in.
    pub(crate) async fn for_request(&self) {
        take(&self.requests).await;
    }

    pub(crate) fn answered(&self) {
        self.requests.add_permits(1);
    }

    pub(crate) fn updated(&self) {
        self.updates.add_permits(1);
    }
}

impl Outbox {
    pub(crate) fn new(session: &str, editor: ConnectionTo<Client>, places: Places) -> Self {
        Self {
            session: SessionId::new(session),
            editor,
            places,
        }
    }

    /// Sends an update, once there is a place for it. Nothing comes of it when the connection is over.
    pub(crate) async fn update(&self, update: SessionUpdate) {
        take(&self.places.updates).await;
        let update = SessionNotification::new(self.session.clone(), update);
        if let Err(error) = self.editor.send_notification(update) {
            tracing::debug!("acp: an update was not sent: {error}");
            self.places.updated();
        }
    }

    pub(crate) fn editor(&self) -> &ConnectionTo<Client> {
        &self.editor
    }

    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }
}

async fn take(places: &Semaphore) {
    // Nobody closes them.
    if let Ok(place) = places.acquire().await {
        place.forget();
    }
}
