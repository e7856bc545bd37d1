//! Telling a client that tasks came, went or changed.
//!
//! The registry's change feed wakes a watcher; it compares what is with what it told last. Output has no feed of its
//! own: while a client is subscribed to a task that runs, its size is looked at, too, every [`OUTPUT_INTERVAL`].

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification};
use rmcp::service::{Peer, SubscriptionSink};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::resources::{Changes, Known, TaskView, uri_of};

/// How often a subscribed task that runs is looked at for new output.
const OUTPUT_INTERVAL: Duration = Duration::from_millis(500);

/// Ticks when something may have changed.
#[derive(Clone)]
pub(crate) struct Ticks(Arc<watch::Sender<()>>);

/// The addresses a client has subscribed to by `resources/subscribe`.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<HashSet<String>>>);

/// Who is told, and by which of the protocol's two ways.
pub(crate) enum Audience {
    /// A client that opened with `initialize`: of every change of the list, and of what it subscribed to.
    Connection(Peer<RoleServer>, Subscriptions),
    /// One `subscriptions/listen` of a client without `initialize`: of what it listens to.
    Listener(SubscriptionSink),
}

impl Ticks {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(())))
    }

    /// Something may have changed.
    pub(crate) fn tick(&self) {
        self.0.send_modify(|()| {});
    }

    fn listen(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}

impl Subscriptions {
    pub(crate) fn add(&self, uri: String) {
        self.lock().insert(uri);
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.lock().remove(uri);
    }

    fn contains(&self, uri: &str) -> bool {
        self.lock().contains(uri)
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells `audience` of changes until `stop`, or until nobody listens any more.
pub(crate) async fn tell_of_changes(
    view: TaskView,
    ticks: Ticks,
    audience: Audience,
    stop: CancellationToken,
) {
    let mut changed = ticks.listen();
    let mut known = Known::default();
    let mut now = view.snapshots();
    known.update(&now);
    loop {
        let looks = now
            .iter()
            .any(|task| !task.status.is_terminal() && audience.wants(&uri_of(&task.id)));
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            ticked = changed.changed() => if ticked.is_err() { return },
            () = tokio::time::sleep(OUTPUT_INTERVAL), if looks => {}
        }
        now = view.snapshots();
        if audience.tell(known.update(&now)).await.is_err() {
            return;
        }
    }
}

/// Nobody listens any more.
struct Gone;

impl Audience {
    fn wants(&self, uri: &str) -> bool {
        match self {
            Self::Connection(_, subscribed) => subscribed.contains(uri),
            Self::Listener(sink) => sink
                .accepted()
                .resource_subscriptions
                .iter()
                .flatten()
                .any(|accepted| accepted == uri),
        }
    }

    async fn tell(&self, changes: Changes) -> Result<(), Gone> {
        if changes.list {
            self.tell_list().await?;
        }
        for uri in changes.updated.iter().map(uri_of).filter(|uri| self.wants(uri)) {
            self.tell_updated(uri).await?;
        }
        Ok(())
    }

    async fn tell_list(&self) -> Result<(), Gone> {
        match self {
            Self::Connection(peer, _) => peer.notify_resource_list_changed().await.map_err(|_| Gone),
            Self::Listener(sink) if sink.accepted().resources_list_changed == Some(true) => {
                sink.notify_resource_list_changed().await.map_err(|_| Gone)
            }
            Self::Listener(_) => Ok(()),
        }
    }

    async fn tell_updated(&self, uri: String) -> Result<(), Gone> {
        match self {
            Self::Connection(peer, _) => {
                let updated = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
                let updated = ServerNotification::ResourceUpdatedNotification(updated);
                peer.send_notification(updated).await.map_err(|_| Gone)
            }
            Self::Listener(sink) => sink.notify_resource_updated(uri).await.map_err(|_| Gone),
        }
    }
}
