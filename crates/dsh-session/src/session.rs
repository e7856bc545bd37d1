//! The log of one conversation.
//!
//! # Invariants
//!
//! 1. An event is in the log, under its number, before anybody can see it, and never changes.
//! 2. What [`Enclosure`](crate::Enclosure) refuses is never in the log.
//! 3. Nobody who reads the log can hold up or refuse an append.
//!
//! Lock order: file, then log. Reading and writing files happens under the first, never under the second.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{
    AppendError, Durability, Event, EventData, SessionFile, SessionHeader, SessionId, StoreError, TurnEnd,
    clock::epoch_ms, log::Log,
};

/// One conversation: its id, its working directory, its log. Cloning gives another handle to the same log.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

/// What comes into a log, for one reader. It reads the log itself, so it misses nothing, however slow it is.
#[derive(Debug)]
pub struct SessionFeed {
    session: Session,
    next: u64,
    grown: watch::Receiver<()>,
}

struct Inner {
    header: SessionHeader,
    log: Mutex<Log>,
    persistence: Option<Persistence>,
    /// Ticks after each append.
    grown: watch::Sender<()>,
}

struct Persistence {
    path: PathBuf,
    file: Mutex<SessionFile>,
}

impl Session {
    /// A session with an empty log that is only in memory. `cwd` is the directory its tools work in, if it has one.
    pub fn new(id: SessionId, cwd: Option<PathBuf>) -> Self {
        Self::with_header(SessionHeader::new(id, cwd))
    }

    /// As [`new`](Self::new), with everything that a header can say.
    pub fn with_header(header: SessionHeader) -> Self {
        Self::build(header, Log::default(), None)
    }

    /// The session of a file, with what was loaded from it. Events get into the file by [`flush`](Self::flush); it stays
    /// locked until the last handle to the session, feeds included, is gone.
    pub fn persisted(mut file: SessionFile) -> Self {
        let log = file.take_loaded();
        Self::build(file.header().clone(), log, Some(file))
    }

    fn build(header: SessionHeader, log: Log, file: Option<SessionFile>) -> Self {
        Self {
            inner: Arc::new(Inner {
                header,
                log: Mutex::new(log),
                persistence: file.map(|file| Persistence {
                    path: file.path().to_owned(),
                    file: Mutex::new(file),
                }),
                grown: watch::Sender::new(()),
            }),
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.inner.header.id
    }

    /// The directory its tools work in.
    pub fn cwd(&self) -> Option<&Path> {
        self.inner.header.cwd.as_deref()
    }

    /// What it is, apart from what happened in it.
    pub fn header(&self) -> &SessionHeader {
        &self.inner.header
    }

    /// Appends an event and returns its sequence number.
    ///
    /// # Errors
    ///
    /// An [`AppendError`] when the event may not stand here; nothing is appended then.
    pub fn append(&self, data: EventData) -> Result<u64, AppendError> {
        let now = epoch_ms();
        let seq = self.lock().append(now, data)?;
        self.inner.grown.send_replace(());
        Ok(seq)
    }

    /// How many events there are, which is the number of the next one.
    pub fn len(&self) -> u64 {
        self.lock().len()
    }

    /// Whether nothing has happened yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number that the next turn has.
    pub fn next_turn(&self) -> u64 {
        self.lock().last_turn() + 1
    }

    /// Whether a request was ever made in this session.
    pub fn has_request(&self) -> bool {
        let is_header = |event: &Event| matches!(event.data, EventData::RequestHeader { .. });
        self.with_events_from(0, |events| events.iter().any(is_header))
    }

    /// Ends the open turn for this reason, with its [`closers`](crate::Enclosure::closers). Without an open turn there is
    /// nothing to do.
    pub fn wind_up(&self, reason: TurnEnd) {
        self.lock().wind_up(epoch_ms(), reason);
        self.inner.grown.send_replace(());
    }

    /// The log as it is now.
    pub fn events(&self) -> Vec<Event> {
        self.events_from(0)
    }

    /// The end of the log as it is now, from the event with this number on.
    pub fn events_from(&self, seq: u64) -> Vec<Event> {
        self.with_events_from(seq, <[Event]>::to_vec)
    }

    /// A feed of all that comes from now on.
    pub fn subscribe(&self) -> SessionFeed {
        self.subscribe_from(self.len())
    }

    /// A feed that begins with the event with this number.
    pub fn subscribe_from(&self, seq: u64) -> SessionFeed {
        SessionFeed {
            session: self.clone(),
            next: seq,
            grown: self.inner.grown.subscribe(),
        }
    }

    /// Gets all events that are in the log now into its file. Without a file there is nothing to do.
    ///
    /// An event is acknowledged when this has returned `Ok`.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] when that failed, for instance because the disk is full. The log has all events still, and the
    /// next call tries again.
    ///
    /// # Panics
    ///
    /// With a file, outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops waiting; what has begun to be written is written.
    pub async fn flush(&self, durability: Durability) -> Result<(), StoreError> {
        let Some(persistence) = &self.inner.persistence else {
            return Ok(());
        };
        let session = self.clone();
        let written = tokio::task::spawn_blocking(move || session.write(durability)).await;
        written.unwrap_or_else(|_| {
            let path = persistence.path.clone();
            Err(StoreError::ShuttingDown { path })
        })
    }

    fn write(&self, durability: Durability) -> Result<(), StoreError> {
        let Some(persistence) = &self.inner.persistence else {
            return Ok(());
        };
        let mut file = persistence.file.lock().unwrap_or_else(PoisonError::into_inner);
        let unwritten = self.events_from(file.next_seq());
        file.write(&unwritten, durability)
    }

    /// Shows the events from this number on. `read` is ours and short: it runs under the lock.
    pub(crate) fn with_events_from<T>(&self, seq: u64, read: impl FnOnce(&[Event]) -> T) -> T {
        let log = self.lock();
        let from = usize::try_from(seq).unwrap_or(usize::MAX);
        read(log.events().get(from..).unwrap_or_default())
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.inner.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionFeed {
    /// Waits until there is something new, and returns all of it; never nothing.
    ///
    /// It waits for as long as nothing comes: a session has no end of its own.
    ///
    /// # Cancel safety
    ///
    /// Safe: what a dropped call would have returned comes with the next one.
    pub async fn next(&mut self) -> Vec<Event> {
        loop {
            // Seen before looking: an append by another thread either comes before the look, which sees its event, or
            // its tick comes after this.
            self.grown.mark_unchanged();
            let events = self.session.events_from(self.next);
            if !events.is_empty() {
                self.next += events.len() as u64;
                return events;
            }
            // The sender lives as long as the session that this has; it cannot be gone.
            let _ = self.grown.changed().await;
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", self.id())
            .finish_non_exhaustive()
    }
}
