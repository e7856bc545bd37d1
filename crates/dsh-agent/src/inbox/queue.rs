//! The pure state of an inbox.

use std::collections::{BTreeMap, HashMap};

use dsh_session::Message;

use super::{Notice, NoticeKey, Shown};

#[derive(Default)]
pub(super) struct Queue {
    next: u64,
    queued: BTreeMap<Place, Notice>,
    leased: BTreeMap<Place, Leased>,
    keys: HashMap<NoticeKey, KeyState>,
}

/// A notice's place in the order of arrival, for as long as it exists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

struct Leased {
    key: NoticeKey,
    fate: Fate,
}

/// What happens to a leased notice that is not committed.
enum Fate {
    ComesBack,
    Retracted,
}

/// Kept for a key while it is held or has a tombstone.
#[derive(Default)]
struct KeyState {
    holds: usize,
    notice: Expected,
}

/// What is known of the one notice of a key.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// It may still come, and is welcome.
    #[default]
    Welcome,
    /// It may still come, and is refused then.
    Tombstone,
    /// It has come while the key was held, or never will.
    Settled,
}

impl Queue {
    pub(super) fn inject(&mut self, notice: Notice) -> Shown {
        if let Some(state) = self.keys.get_mut(&notice.key) {
            let expected = std::mem::replace(&mut state.notice, Expected::Settled);
            if expected == Expected::Tombstone {
                self.drop_idle(&notice.key);
                return Shown::Nothing;
            }
        }
        let shown = self.shown_if_free(&notice.key);
        self.queued.insert(Place(self.next), notice);
        self.next += 1;
        shown
    }

    pub(super) fn hold(&mut self, key: &NoticeKey) {
        let here = self.is_here(key);
        let state = self.keys.entry(key.clone()).or_default();
        state.holds += 1;
        if here {
            state.notice = Expected::Settled;
        }
    }

    pub(super) fn retract(&mut self, key: &NoticeKey) {
        self.queued.retain(|_, notice| notice.key != *key);
        for leased in self.leased.values_mut().filter(|leased| leased.key == *key) {
            leased.fate = Fate::Retracted;
        }
        if let Some(state) = self.keys.get_mut(key)
            && state.notice == Expected::Welcome
        {
            state.notice = Expected::Tombstone;
        }
    }

    pub(super) fn release(&mut self, key: &NoticeKey) -> Shown {
        if let Some(state) = self.keys.get_mut(key) {
            state.holds = state.holds.saturating_sub(1);
        }
        self.drop_idle(key);
        if self.queued.values().any(|notice| notice.key == *key) {
            self.shown_if_free(key)
        } else {
            Shown::Nothing
        }
    }

    pub(super) fn forget(&mut self, key: &NoticeKey) {
        if let Some(state) = self.keys.get_mut(key) {
            state.notice = Expected::Settled;
        }
        self.drop_idle(key);
    }

    pub(super) fn lease(&mut self) -> (Vec<Place>, Vec<Message>) {
        let free = self
            .queued
            .iter()
            .filter(|(_, notice)| !is_held(&self.keys, &notice.key));
        let places: Vec<_> = free.map(|(&place, _)| place).collect();
        let mut messages = Vec::with_capacity(places.len());
        for (place, Notice { key, message }) in
            places.iter().filter_map(|place| self.queued.remove_entry(place))
        {
            self.leased.insert(
                place,
                Leased {
                    key,
                    fate: Fate::ComesBack,
                },
            );
            messages.push(message);
        }
        (places, messages)
    }

    pub(super) fn commit(&mut self, places: &[Place]) {
        for place in places {
            self.leased.remove(place);
        }
    }

    pub(super) fn give_back(&mut self, notices: impl Iterator<Item = (Place, Message)>) -> Shown {
        let mut shown = Shown::Nothing;
        for (place, message) in notices {
            let Some(Leased { key, fate }) = self.leased.remove(&place) else {
                continue;
            };
            match fate {
                Fate::Retracted => {}
                Fate::ComesBack => {
                    if self.shown_if_free(&key) == Shown::Something {
                        shown = Shown::Something;
                    }
                    self.queued.insert(place, Notice { key, message });
                }
            }
        }
        shown
    }

    pub(super) fn visible(&self) -> usize {
        self.queued
            .values()
            .filter(|notice| !is_held(&self.keys, &notice.key))
            .count()
    }

    /// How many notices are visible that came, at first, not before `since`.
    pub(super) fn visible_since(&self, since: Place) -> usize {
        self.queued
            .range(since..)
            .filter(|(_, notice)| !is_held(&self.keys, &notice.key))
            .count()
    }

    /// The place of the next notice that arrives.
    pub(super) fn next_place(&self) -> Place {
        Place(self.next)
    }

    #[cfg(test)]
    pub(super) fn known_keys(&self) -> usize {
        self.keys.len()
    }

    fn is_here(&self, key: &NoticeKey) -> bool {
        self.queued.values().any(|notice| notice.key == *key)
            || self.leased.values().any(|leased| leased.key == *key)
    }

    fn shown_if_free(&self, key: &NoticeKey) -> Shown {
        if is_held(&self.keys, key) {
            Shown::Nothing
        } else {
            Shown::Something
        }
    }

    fn drop_idle(&mut self, key: &NoticeKey) {
        if self
            .keys
            .get(key)
            .is_some_and(|state| state.holds == 0 && state.notice != Expected::Tombstone)
        {
            self.keys.remove(key);
        }
    }
}

fn is_held(keys: &HashMap<NoticeKey, KeyState>, key: &NoticeKey) -> bool {
    keys.get(key).is_some_and(|state| state.holds > 0)
}
