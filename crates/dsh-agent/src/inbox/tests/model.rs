//! What an inbox should do, told by its history.

use std::collections::BTreeSet;

pub(super) type Key = &'static str;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Inject(Key),
    Hold(Key),
    /// Of the oldest hold on the key.
    Retract(Key),
    /// Of the oldest hold on the key.
    Release(Key),
    Forget(Key),
    Lease,
    /// Of the lease with this index among those that live.
    Commit(usize),
    DropLease(usize),
}

#[derive(Clone, Default)]
pub(super) struct Model {
    pub(super) history: Vec<Operation>,
    /// In order of arrival; never removed.
    notices: Vec<(Key, String, State)>,
    holds: Vec<Key>,
    /// Live leases by number.
    leases: Vec<usize>,
    made_leases: usize,
    injected: usize,
    tombstones: BTreeSet<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    Leased(usize),
    LeasedButRetracted(usize),
    Told,
    Retracted,
}

impl Model {
    fn after(history: &[Operation]) -> Self {
        let mut model = Self::default();
        for &operation in history {
            model.apply(operation);
        }
        model
    }

    /// Returns what a lease made or committed shows.
    pub(super) fn apply(&mut self, operation: Operation) -> Vec<String> {
        let shown = match operation {
            Operation::Inject(key) => {
                if !self.tombstones.remove(key) {
                    self.notices
                        .push((key, format!("{key}{}", self.injected), State::Queued));
                }
                self.injected += 1;
                Vec::new()
            }
            Operation::Hold(key) => {
                self.holds.push(key);
                Vec::new()
            }
            Operation::Retract(key) => {
                if !self.expects_nothing_more(key) {
                    self.tombstones.insert(key);
                }
                self.change(|(of, _, state)| match state {
                    State::Queued if of == key => State::Retracted,
                    State::Leased(lease) if of == key => State::LeasedButRetracted(lease),
                    other => other,
                });
                self.end_hold(key)
            }
            Operation::Release(key) => self.end_hold(key),
            Operation::Forget(key) => {
                self.tombstones.remove(key);
                Vec::new()
            }
            Operation::Lease => self.lease(),
            Operation::Commit(index) => {
                let lease = self.leases.remove(index);
                let of = |state| state == State::Leased(lease) || state == State::LeasedButRetracted(lease);
                let told = self.texts(|(_, _, state)| of(*state));
                self.change(|(_, _, state)| if of(state) { State::Told } else { state });
                told
            }
            Operation::DropLease(index) => {
                let lease = self.leases.remove(index);
                self.change(|(_, _, state)| match state {
                    State::Leased(of) if of == lease => State::Queued,
                    State::LeasedButRetracted(of) if of == lease => State::Retracted,
                    other => other,
                });
                Vec::new()
            }
        };
        self.history.push(operation);
        shown
    }

    pub(super) fn visible(&self) -> Vec<String> {
        self.texts(|(key, _, state)| *state == State::Queued && !self.holds.contains(key))
    }

    /// Keys an inbox has to remember.
    pub(super) fn known_keys(&self) -> usize {
        self.holds
            .iter()
            .chain(&self.tombstones)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// Whether every notice has met its fate.
    pub(super) fn is_at_rest(&self) -> bool {
        self.notices
            .iter()
            .all(|(_, _, state)| matches!(state, State::Told | State::Retracted))
    }

    pub(super) fn possible(&self, keys: &[Key]) -> Vec<Operation> {
        let mut possible = Vec::new();
        for &key in keys {
            possible.extend([Operation::Inject(key), Operation::Forget(key)]);
            if self.holds.contains(&key) {
                possible.extend([Operation::Retract(key), Operation::Release(key)]);
            }
            if self.holds.len() < 2 {
                possible.push(Operation::Hold(key));
            }
        }
        if self.leases.len() < 2 {
            possible.push(Operation::Lease);
        }
        for index in 0..self.leases.len() {
            possible.extend([Operation::Commit(index), Operation::DropLease(index)]);
        }
        possible
    }

    /// Operations that give up all that is under way.
    pub(super) fn endings(&self) -> Vec<Operation> {
        let leases = self.leases.iter().map(|_| Operation::DropLease(0));
        leases
            .chain(self.holds.iter().map(|key| Operation::Release(key)))
            .collect()
    }

    /// Whether the notice of this key was here when the holds in force began, or has come or been given up since.
    fn expects_nothing_more(&self, key: Key) -> bool {
        let change = |operation: &Operation| match *operation {
            Operation::Hold(of) if of == key => 1,
            Operation::Retract(of) | Operation::Release(of) if of == key => -1,
            _ => 0,
        };
        let held = |length: usize| self.history[..length].iter().map(change).sum::<i32>() > 0;
        let first = (0..self.history.len())
            .rev()
            .find(|&length| !held(length))
            .unwrap_or(0);
        let was_here = Self::after(&self.history[..first]).is_here(key);
        let since = &self.history[first..];
        was_here || since.contains(&Operation::Inject(key)) || since.contains(&Operation::Forget(key))
    }

    fn is_here(&self, key: Key) -> bool {
        self.notices.iter().any(|(of, _, state)| {
            *of == key
                && matches!(
                    state,
                    State::Queued | State::Leased(_) | State::LeasedButRetracted(_)
                )
        })
    }

    fn lease(&mut self) -> Vec<String> {
        let taken = self.visible();
        let lease = self.made_leases;
        self.made_leases += 1;
        self.leases.push(lease);
        let holds = self.holds.clone();
        self.change(|(key, _, state)| match state {
            State::Queued if !holds.contains(&key) => State::Leased(lease),
            other => other,
        });
        taken
    }

    fn end_hold(&mut self, key: Key) -> Vec<String> {
        let index = self.holds.iter().position(|held| *held == key).unwrap();
        self.holds.remove(index);
        Vec::new()
    }

    fn change(&mut self, next: impl Fn((Key, &str, State)) -> State) {
        for (key, text, state) in &mut self.notices {
            *state = next((key, text, *state));
        }
    }

    fn texts(&self, wanted: impl Fn(&(Key, String, State)) -> bool) -> Vec<String> {
        self.notices
            .iter()
            .filter(|notice| wanted(notice))
            .map(|(_, text, _)| text.clone())
            .collect()
    }
}
