//! What one connection has: the services, the open sessions, and what the editor can do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::{Client, Error};
use dsh_agent_core::{Served, ServiceContext};
use dsh_agent_loop::LedAgent;
use dsh_scope::Scope;
use dsh_session::{EventData, Session};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approval::AskEditor;
use crate::background::Background;
use crate::card::{Cards, Presenter, Terminals};
use crate::config::{Choices, Settings};
use crate::ending::Ending;
use crate::error::{internal, invalid};
use crate::feed::{Feed, News};
use crate::outbox::{Outbox, Places};
use crate::sessions::{MAX_OPEN, Open, Sessions};
use crate::store::Store;
use crate::transcript::{Telling, Transcript};

/// What the editor can do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Capabilities {
    pub(crate) terminals: Terminals,
    pub(crate) news: News,
}

/// See the module.
pub(crate) struct Connection {
    context: ServiceContext,
    pub(crate) scope: Scope,
    pub(crate) ending: Ending,
    pub(crate) places: Places,
    pub(crate) models: Choices,
    store: Store,
    pub(crate) sessions: Sessions,
    capabilities: Mutex<Capabilities>,
    /// Cancelled when nobody waits for the sessions to be closed in order.
    dropped: CancellationToken,
}

impl Connection {
    pub(crate) fn new(
        context: ServiceContext,
        scope: Scope,
        settings: Settings,
        dropped: CancellationToken,
    ) -> Self {
        Self {
            models: Choices::new(context.model.clone(), settings.models),
            context,
            scope,
            ending: Ending::default(),
            places: Places::new(),
            store: Store::new(settings.sessions),
            sessions: Sessions::default(),
            capabilities: Mutex::new(Capabilities {
                terminals: Terminals::AsText,
                news: News::Unknown,
            }),
            dropped,
        }
    }

    /// Works on a request beside the others.
    pub(crate) fn spawn(&self, label: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        // Refused only when the connection is over; the request is answered with that when it is dropped.
        drop(self.scope.spawn(label, work));
    }

    /// Waits until the connection is over.
    pub(crate) async fn over(&self, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = self.ending.token().cancelled() => {}
            () = stop.cancelled() => self.ending.end(Served::Stopped),
            () = self.scope.token().cancelled() => self.ending.end(Served::Stopped),
        }
    }

    /// The preset of new sessions.
    pub(crate) fn preset(&self) -> String {
        self.context.preset().to_owned()
    }

    pub(crate) fn capabilities(&self) -> MutexGuard<'_, Capabilities> {
        self.capabilities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the disk, beside the other requests.
    pub(crate) async fn with_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let store = self.store.clone();
        let done = tokio::task::spawn_blocking(move || work(&store)).await;
        done.unwrap_or_else(|_| Err(internal("the runtime is shutting down")))
    }

    /// Gives a session an agent, and shows it to the editor: all that is in its log now, and what comes.
    pub(crate) async fn open(
        &self,
        session: Session,
        editor: ConnectionTo<Client>,
        telling: Telling,
    ) -> Result<Arc<Open>, Error> {
        let full = || invalid(format_args!("{MAX_OPEN} sessions are open: close one"));
        if self.sessions.is_full() {
            return Err(full());
        }
        let outbox = Outbox::new(session.id().as_str(), editor, self.places.clone());
        let (cards, shown) = watch::channel(Vec::new());
        let approver = AskEditor {
            outbox: outbox.clone(),
            cards: shown,
        };
        let led = self
            .context
            .lead(session, Some(Arc::new(approver)))
            .await
            .map_err(internal)?;
        self.choose_last_model(&led);
        let open = Arc::new(Open {
            led,
            prompt: Arc::default(),
            finish: self.dropped.child_token(),
            running: TaskTracker::new(),
            scope: self.scope.clone(),
        });
        match self.feed(&open, outbox, cards, telling).await {
            Ok(feed) => open.spawn(
                "acp feed",
                open.running.track_future(feed.run(open.finish.clone())),
            ),
            Err(error) => {
                open.close().await;
                return Err(error);
            }
        }
        // Others may have been opened meanwhile.
        if let Err(open) = self.sessions.insert(Arc::clone(&open)) {
            open.close().await;
            return Err(full());
        }
        // The end takes the sessions after it began: either it has this one, or it is seen here.
        if self.ending.token().is_cancelled()
            && let Some(late) = self.sessions.remove(open.led.agent().id())
        {
            late.close().await;
        }
        Ok(open)
    }

    /// Closes every session, all at once.
    pub(crate) async fn close_all(&self) {
        let open = self.sessions.remove_all();
        futures_util::future::join_all(open.iter().map(|open| open.close())).await;
    }

    async fn feed(
        &self,
        open: &Open,
        outbox: Outbox,
        cards: watch::Sender<Cards>,
        telling: Telling,
    ) -> Result<Feed, Error> {
        let capabilities = *self.capabilities();
        let agent = open.led.agent();
        let presenter = Presenter {
            tools: self.context.tools.clone(),
            agent: Arc::clone(agent),
            terminals: capabilities.terminals,
        };
        let live = open.led.live();
        let background = Background::new(self.context.tasks.clone(), Arc::clone(agent))
            .map_err(|error| internal(&error))?;
        let mut transcript = Transcript::new(presenter);
        let events = agent.session().events();
        for event in &events {
            for update in transcript.event(event, telling) {
                outbox.update(update).await;
            }
        }
        Ok(Feed {
            transcript,
            log: agent.session().subscribe_from(events.len() as u64),
            live,
            background,
            outbox,
            session: agent.session().clone(),
            prompt: Arc::clone(&open.prompt),
            cards,
            news: capabilities.news,
        })
    }

    /// A session goes on with the model that was chosen or answered last, if that is still offered.
    fn choose_last_model(&self, led: &LedAgent) {
        let events = led.agent().session().events();
        let last = events.iter().rev().find_map(|event| match &event.data {
            EventData::RequestHeader { header, .. } => self.models.find(&header.provider, &header.model),
            EventData::ModelChoice { provider, model } => self.models.find(provider, model),
            _ => None,
        });
        if let Some(model) = last {
            // Not chosen now: the log has it.
            led.model_seat().set(model.clone());
        }
    }
}
