//! Which records each session sees, so that nobody has to look through everybody's.

use std::collections::BTreeMap;

use dsh_session::SessionId;
use rustc_hash::FxHashMap;

use crate::id::TaskId;

use super::{Owner, Record};

/// Ids by their places in the order of registration.
type View = BTreeMap<u64, TaskId>;

/// The records of each session. What is in here and what [`Record::standing`] says are the same.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Nobody's, which everybody sees.
    unowned: View,
    own: FxHashMap<SessionId, View>,
    /// Those of the agents that work for a session.
    above: FxHashMap<SessionId, View>,
}

impl Views {
    pub(super) fn add<W>(&mut self, record: &Record<W>) {
        let (at, id) = (record.place, &record.id);
        let Some(owner) = &record.owner else {
            self.unowned.insert(at, id.clone());
            return;
        };
        view(&mut self.own, &owner.session).insert(at, id.clone());
        for above in owner.above.iter() {
            view(&mut self.above, above).insert(at, id.clone());
        }
    }

    pub(super) fn remove<W>(&mut self, record: &Record<W>) {
        let Some(Owner { session, above, .. }) = &record.owner else {
            self.unowned.remove(&record.place);
            return;
        };
        take(&mut self.own, session, record.place);
        for above in above.iter() {
            take(&mut self.above, above, record.place);
        }
    }

    /// The session's own, and nobody's.
    pub(super) fn own(&self, session: Option<&SessionId>) -> impl Iterator<Item = &TaskId> {
        let own = session.and_then(|session| self.own.get(session));
        in_order([Some(&self.unowned), own])
    }

    /// All that the session may use.
    pub(super) fn reachable(&self, session: Option<&SessionId>) -> impl Iterator<Item = &TaskId> {
        let own = session.and_then(|session| self.own.get(session));
        let above = session.and_then(|session| self.above.get(session));
        in_order([Some(&self.unowned), own, above])
    }
}

fn in_order<'a>(views: impl IntoIterator<Item = Option<&'a View>>) -> impl Iterator<Item = &'a TaskId> {
    let mut all: Vec<(&u64, &TaskId)> = views.into_iter().flatten().flatten().collect();
    // A merge: each view is in order already.
    all.sort_by_key(|(at, _)| **at);
    // An agent may work for another one of its own session.
    all.dedup_by_key(|(at, _)| **at);
    all.into_iter().map(|(_, id)| id)
}

fn view<'a>(views: &'a mut FxHashMap<SessionId, View>, session: &SessionId) -> &'a mut View {
    views.entry(session.clone()).or_default()
}

fn take(views: &mut FxHashMap<SessionId, View>, session: &SessionId, at: u64) {
    if let Some(view) = views.get_mut(session) {
        view.remove(&at);
        if view.is_empty() {
            views.remove(session);
        }
    }
}
