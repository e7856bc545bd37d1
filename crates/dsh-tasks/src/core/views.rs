//! Which records each session sees, so that nobody has to look through everybody's.

use std::collections::{BTreeSet, HashMap};

use dsh_session::SessionId;

use super::Owner;

/// The records of each session, by their places in the order of registration. What is in here and what
/// [`Record::standing`](super::Record::standing) says are the same.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Nobody's, which everybody sees.
    unowned: BTreeSet<u64>,
    own: HashMap<SessionId, BTreeSet<u64>>,
    /// Those of the agents that work for a session.
    above: HashMap<SessionId, BTreeSet<u64>>,
}

impl Views {
    pub(super) fn add(&mut self, owner: &Option<Owner>, at: u64) {
        let Some(owner) = owner else {
            self.unowned.insert(at);
            return;
        };
        self.own.entry(owner.session.clone()).or_default().insert(at);
        for above in owner.above.iter() {
            self.above.entry(above.clone()).or_default().insert(at);
        }
    }

    pub(super) fn remove(&mut self, owner: &Option<Owner>, at: u64) {
        let Some(owner) = owner else {
            self.unowned.remove(&at);
            return;
        };
        take(&mut self.own, &owner.session, at);
        for above in owner.above.iter() {
            take(&mut self.above, above, at);
        }
    }

    /// The session's own, and nobody's.
    pub(super) fn own(&self, session: Option<&SessionId>) -> BTreeSet<u64> {
        let own = session.and_then(|session| self.own.get(session));
        self.unowned
            .iter()
            .chain(own.into_iter().flatten())
            .copied()
            .collect()
    }

    /// All that the session may use.
    pub(super) fn reachable(&self, session: Option<&SessionId>) -> BTreeSet<u64> {
        let above = session.and_then(|session| self.above.get(session));
        let mut all = self.own(session);
        all.extend(above.into_iter().flatten());
        all
    }
}

fn take(sets: &mut HashMap<SessionId, BTreeSet<u64>>, session: &SessionId, at: u64) {
    if let Some(set) = sets.get_mut(session) {
        set.remove(&at);
        if set.is_empty() {
            sets.remove(session);
        }
    }
}
