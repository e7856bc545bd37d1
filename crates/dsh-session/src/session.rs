//! The log of one conversation.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{Event, EventData, SessionId};

/// One conversation: its id, its working directory, its log. Cloning gives another handle to the same log.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    id: SessionId,
    cwd: Option<PathBuf>,
    events: Mutex<Vec<Event>>,
}

impl Session {
    /// A session with an empty log. `cwd` is the directory its tools work in, if it has one.
    pub fn new(id: SessionId, cwd: Option<PathBuf>) -> Self {
        Self {
            inner: Arc::new(Inner {
                id,
                cwd,
                events: Mutex::default(),
            }),
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.inner.id
    }

    /// The directory its tools work in.
    pub fn cwd(&self) -> Option<&Path> {
        self.inner.cwd.as_deref()
    }

    /// Appends an event and returns its sequence number.
    pub fn append(&self, data: EventData) -> u64 {
        let now = epoch_ms();
        let mut events = self.lock();
        let seq = events.len() as u64;
        let time = monotonic(&events, now);
        events.push(Event { seq, time, data });
        seq
    }

    /// The log as it is now.
    pub fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.inner.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.inner.id)
            .finish_non_exhaustive()
    }
}

/// The wall clock may be set back; the log's time is not.
fn monotonic(events: &[Event], now: u64) -> u64 {
    events.last().map_or(now, |last| last.time.max(now))
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, MessageSource};

    #[test]
    fn a_clock_that_is_set_back_does_not_set_back_the_log() {
        let data = EventData::UserMessage(Message {
            content: Vec::new(),
            source: MessageSource::User,
        });
        assert_eq!(monotonic(&[], 5), 5);
        let events = [Event {
            seq: 0,
            time: 100,
            data,
        }];
        assert_eq!(monotonic(&events, 5), 100);
        assert_eq!(monotonic(&events, 101), 101);
    }
}
