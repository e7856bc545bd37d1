//! The two things that end by themselves when they are dropped.

use std::{fmt, sync::Arc};

use dsh_session::Message;

use super::{NoticeKey, Shared, State, queue::Place};

/// Keeps a notice out of sight; see [`Inbox::hold`](super::Inbox::hold). Dropping it shows the notice again, at its
/// old place.
#[must_use = "dropping it shows the notice again"]
pub struct NoticeHold {
    shared: Arc<Shared>,
    key: NoticeKey,
}

/// Visible notices, taken out to be told. Dropping it puts them back at their old places, except what was retracted
/// meanwhile.
#[must_use = "dropping it puts the notices back"]
pub struct InboxLease {
    shared: Arc<Shared>,
    /// Of the messages, one by one.
    places: Vec<Place>,
    messages: Vec<Message>,
}

impl NoticeHold {
    pub(super) fn new(shared: Arc<Shared>, key: NoticeKey) -> Self {
        Self { shared, key }
    }

    /// Removes the notice: it was told on another way. If it has not arrived yet, it is refused when it does. If a
    /// lease has it, it is gone when that lease is dropped, and told when that lease is committed.
    pub fn retract(self) {
        self.shared.lock().notices.retract(&self.key);
    }
}

impl InboxLease {
    /// Of every visible notice.
    pub(crate) fn of(shared: &Arc<Shared>, state: &mut State) -> Self {
        let (places, messages) = state.notices.lease();
        Self {
            shared: shared.clone(),
            places,
            messages,
        }
    }

    /// What is to be told, in order of arrival.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The model got them: they are gone for good.
    pub fn commit(mut self) {
        self.shared
            .lock()
            .notices
            .commit(&std::mem::take(&mut self.places));
    }
}

impl Drop for NoticeHold {
    fn drop(&mut self) {
        self.shared.apply(|queue| queue.release(&self.key));
    }
}

impl Drop for InboxLease {
    fn drop(&mut self) {
        let places = std::mem::take(&mut self.places);
        let messages = std::mem::take(&mut self.messages);
        self.shared
            .apply(|queue| queue.give_back(places.into_iter().zip(messages)));
    }
}

impl fmt::Debug for NoticeHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeHold")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for InboxLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboxLease")
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}
