//! All records, and who may use them. Everything here runs under the ledger's lock.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use dsh_agent::InstanceId;
use dsh_session::SessionId;
use rustc_hash::FxHashMap;

use crate::{
    error::AccessError,
    id::{Kind, TaskId},
    outcome::Outcome,
    vocabulary::{RunningTask, Vocabulary},
};

use super::accounts::{Accounts, Bucket, OwnerLife};
use super::teardown::Ending;
use super::views::Views;
use super::{
    Dispatched, Effect, Ended, Facts, Left, News, Owner, Record, Standing, Verdict, ordinals::Ordinals,
};

/// What the core is configured with.
#[derive(Debug, Clone)]
pub struct Limits {
    pub per_owner: u64,
    pub retained_unowned: usize,
    pub vocabulary: Vocabulary,
}

#[derive(Debug)]
pub struct Table<W> {
    pub(super) limits: Limits,
    pub(super) life: Life,
    pub(super) accounts: Accounts,
    /// By id. Boxed: a table that grows moves its entries and is half empty then. The hash is a cheap one: ids, like all
    /// keys here, are given by this process.
    records: FxHashMap<TaskId, Box<Record<W>>>,
    views: Views,
    /// The place of the next record.
    next: u64,
    counters: FxHashMap<Kind, u64>,
    /// Unowned terminal records, oldest end first.
    ended_unowned: VecDeque<TaskId>,
    expired: HashMap<String, Ordinals>,
    /// Whether there ever was a task of an earlier harness.
    has_earlier: bool,
    /// How many observe.
    pub(crate) observers: usize,
    effects: VecDeque<Effect<W>>,
}

/// Whether starts are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Open,
    /// Disposal waits for what is left.
    Closing,
    /// Disposal is over, or waits no longer.
    Closed,
}

impl<W: Clone> Table<W> {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            life: Life::Open,
            accounts: Accounts::default(),
            records: FxHashMap::default(),
            views: Views::default(),
            next: 0,
            counters: FxHashMap::default(),
            ended_unowned: VecDeque::new(),
            expired: HashMap::new(),
            has_earlier: false,
            observers: 0,
            effects: VecDeque::new(),
        }
    }

    /// Whether the cleanup of an owner is attached and has not begun.
    pub fn is_attached(&self, owner: InstanceId) -> bool {
        self.accounts.of(Some(owner)).life == Some(OwnerLife::Attached)
    }

    /// Whether disposal has begun.
    pub fn is_closing(&self) -> bool {
        self.life != Life::Open
    }

    pub fn take_effects(&mut self) -> VecDeque<Effect<W>> {
        std::mem::take(&mut self.effects)
    }

    /// Whether something is to happen that has not been taken.
    pub(super) fn left(&self) -> Left {
        match self.effects.is_empty() {
            true => Left::Nothing,
            false => Left::Effects,
        }
    }

    pub fn insert(&mut self, owner: Option<Owner>, mut facts: Facts, work: W, now: u64) -> TaskId {
        let counter = self.counters.entry(facts.kind);
        // All tasks of a kind share its name.
        facts.kind = counter.key().clone();
        let counter = counter.or_default();
        *counter += 1;
        let id = TaskId::nth(&facts.kind, *counter);
        self.keep(Record::new(id.clone(), self.next, owner, facts, work, now));
        id
    }

    /// Makes the record of a task that ended before there was this table. Its number is never given again.
    pub fn restore(&mut self, key: TaskId, owner: &Owner, ended: &Ended, kind: Kind, work: W, now: u64) {
        if let Some((_, ordinal)) = ended.id.parts() {
            let counter = self.counters.entry(kind.clone()).or_default();
            *counter = ordinal.max(*counter);
        }
        let facts = Facts {
            kind,
            label: ended.label.clone(),
            output_limit_bytes: None,
        };
        let mut record = Record::new(key.clone(), self.next, Some(owner.clone()), facts, work, now);
        record.name = ended.id.clone();
        record.settle(
            ended.outcome.clone(),
            Verdict::Producer,
            now,
            self.limits.vocabulary,
        );
        match ended.news {
            News::Old => record.was_told(),
            News::New => {}
        }
        self.has_earlier = true;
        self.keep(record);
        self.announce(&key);
    }

    fn keep(&mut self, record: Record<W>) {
        self.next += 1;
        self.accounts.change(bucket_of(&record.owner), |account| {
            account.live += u64::from(!record.is_terminal());
            account.owed += u64::from(record.dispatched().is_none());
        });
        self.changed(session(&record.owner).cloned());
        self.views.add(&record);
        self.records.insert(record.id.clone(), Box::new(record));
    }

    /// The record, if this caller may use it, and how it stands to it.
    pub fn access(
        &mut self,
        id: &TaskId,
        caller: Option<&SessionId>,
    ) -> Result<(&mut Record<W>, Standing), AccessError> {
        let vocabulary = self.limits.vocabulary;
        let earlier = caller.filter(|_| self.has_earlier);
        let earlier = earlier.map(|session| earlier_key(id, session));
        let earlier = earlier.filter(|key| self.records.contains_key(key));
        let key = earlier.as_ref().unwrap_or(id);
        if !self.records.contains_key(key) {
            return Err(self.missing(id.clone(), caller));
        }
        let record = self.record(key);
        let used = record.and_then(|record| {
            let standing = record.standing(caller)?;
            Some((record, standing))
        });
        used.ok_or_else(|| AccessError::Foreign {
            vocabulary,
            id: id.clone(),
        })
    }

    /// What to say of an id under which there is no record for this caller.
    fn missing(&self, id: TaskId, caller: Option<&SessionId>) -> AccessError {
        let vocabulary = self.limits.vocabulary;
        if self.is_expired(&id) {
            return AccessError::Expired { vocabulary, id };
        }
        if self.records().any(|record| record.name == id) {
            return AccessError::Foreign { vocabulary, id };
        }
        let known = self.reachable(caller).map(|record| record.name.clone()).collect();
        AccessError::Unknown {
            vocabulary,
            id,
            known,
        }
    }

    pub fn record(&mut self, id: &TaskId) -> Option<&mut Record<W>> {
        self.records.get_mut(id).map(Box::as_mut)
    }

    /// All, in no order.
    pub fn records(&self) -> impl Iterator<Item = &Record<W>> {
        self.records.values().map(Box::as_ref)
    }

    /// The caller's own, and nobody's.
    pub fn own(&self, caller: Option<&SessionId>) -> impl Iterator<Item = &Record<W>> {
        self.seen(self.views.own(caller))
    }

    /// All that the caller may use.
    pub fn reachable(&self, caller: Option<&SessionId>) -> impl Iterator<Item = &Record<W>> {
        self.seen(self.views.reachable(caller))
    }

    fn seen<'a>(&'a self, ids: impl Iterator<Item = &'a TaskId>) -> impl Iterator<Item = &'a Record<W>> {
        ids.filter_map(|id| self.records.get(id).map(Box::as_ref))
    }

    /// How much of its limit a bucket has used.
    pub fn used(&self, bucket: Bucket) -> u64 {
        self.accounts.of(bucket).used()
    }

    pub(super) fn running(&self, owner: &Option<Owner>, now: u64) -> Vec<RunningTask> {
        let bucket = bucket_of(owner);
        let live = self
            .own(session(owner))
            .filter(|record| !record.is_terminal() && bucket_of(&record.owner) == bucket);
        let running = live.map(|record| RunningTask {
            id: record.id.clone(),
            age_ms: now.saturating_sub(record.started_at()),
        });
        running.collect()
    }

    pub fn settle(&mut self, id: &TaskId, outcome: Outcome, verdict: Verdict, now: u64) -> bool {
        let words = self.limits.vocabulary;
        let Some(record) = self.records.get_mut(id) else {
            return false;
        };
        if !record.settle(outcome, verdict, now, words) {
            return false;
        }
        self.accounts
            .change(bucket_of(&record.owner), |account| account.live -= 1);
        let (snapshot, work) = (Arc::new(record.snapshot()), record.work.clone());
        let session = session(&record.owner).cloned();
        if session.is_none() {
            self.ended_unowned.push_back(id.clone());
        }
        let done = record.announce().then(|| Effect::Done {
            snapshot: snapshot.clone(),
            work: work.clone(),
        });
        self.effects.push_back(Effect::Settled { snapshot, work });
        self.changed(session);
        self.effects.extend(done);
        true
    }

    /// Writes `Stopping` and says so to the observers.
    pub fn stop(&mut self, id: &TaskId) -> Option<&mut Record<W>> {
        let record = self.records.get_mut(id)?;
        if record.stop() {
            let session = session(&record.owner).cloned();
            self.changed(session);
        }
        self.record(id)
    }

    /// Ends a claim; how far the done event has come.
    pub fn end_claim(&mut self, id: &TaskId, end: impl FnOnce(&mut Record<W>)) -> Option<Dispatched> {
        let record = self.records.get_mut(id)?;
        end(record);
        let dispatched = record.dispatched();
        announce(record, &mut self.effects);
        self.evict();
        dispatched
    }

    /// Emits the done event if it is due.
    pub fn announce(&mut self, id: &TaskId) {
        if let Some(record) = self.records.get_mut(id) {
            announce(record, &mut self.effects);
        }
    }

    /// The listeners of a done event were called, or have also ended; whether somebody has told the end meanwhile.
    pub fn dispatched(&mut self, id: &TaskId, how: Dispatched) -> bool {
        let Some(record) = self.records.get_mut(id) else {
            return false;
        };
        if record.dispatched().is_none() {
            self.accounts
                .change(bucket_of(&record.owner), |account| account.owed -= 1);
        }
        record.set_dispatched(how);
        let told = record.is_told();
        self.evict();
        told
    }

    /// The ids of those whose tasks end, in the order of registration.
    pub(super) fn ending(&self, ending: Ending) -> Vec<TaskId> {
        let included = self.records().filter(|record| ending.includes(record));
        let mut all: Vec<(u64, TaskId)> = included.map(|record| (record.place, record.id.clone())).collect();
        all.sort_unstable_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// Drops records. What the shell kept of them goes with an effect: its drop is foreign code.
    pub(super) fn remove(&mut self, ids: Vec<TaskId>) {
        let mut told: Vec<Option<SessionId>> = Vec::new();
        for id in ids {
            let Some(record) = self.records.remove(&id).map(|record| *record) else {
                continue;
            };
            self.views.remove(&record);
            self.accounts.change(bucket_of(&record.owner), |account| {
                account.live -= u64::from(!record.is_terminal());
                account.owed -= u64::from(record.dispatched().is_none());
            });
            if record.owner.is_none() {
                self.ended_unowned.retain(|ended| *ended != id);
            }
            let session = session(&record.owner).cloned();
            self.effects.push_back(Effect::Dropped(record.work));
            if !told.contains(&session) {
                told.push(session.clone());
                self.changed(session);
            }
        }
    }

    /// Drops the unowned records that ended first, beyond what is kept. Who is about to tell an end keeps its record.
    fn evict(&mut self) {
        while self.ended_unowned.len() > self.limits.retained_unowned {
            let evictable = |id: &&TaskId| {
                let record = self.records.get(*id);
                record.is_some_and(|record| record.dispatched().is_some() && !record.is_claimed())
            };
            let Some(id) = self.ended_unowned.iter().find(evictable).cloned() else {
                return;
            };
            if let Some((kind, ordinal)) = id.parts() {
                self.expired.entry(kind.to_owned()).or_default().insert(ordinal);
            }
            self.remove(vec![id]);
        }
    }

    fn is_expired(&self, id: &TaskId) -> bool {
        let Some((kind, ordinal)) = id.parts() else {
            return false;
        };
        // `bash-07` is not the id `bash-7`.
        let is_id = id.as_str() == format!("{kind}-{ordinal}");
        is_id && self.expired.get(kind).is_some_and(|set| set.contains(ordinal))
    }

    fn changed(&mut self, session: Option<SessionId>) {
        if self.observers > 0 {
            self.effects.push_back(Effect::Changed(session));
        }
    }
}

/// Emits the done event if it is due.
fn announce<W: Clone>(record: &mut Record<W>, effects: &mut VecDeque<Effect<W>>) {
    if record.announce() {
        let (snapshot, work) = (Arc::new(record.snapshot()), record.work.clone());
        effects.push_back(Effect::Done { snapshot, work });
    }
}

pub(super) fn bucket_of(owner: &Option<Owner>) -> Bucket {
    owner.as_ref().map(|owner| owner.instance)
}

/// Under which id a task of an earlier harness is kept: other sessions may have a task of the same name, and no id that
/// is given holds such a character.
pub(super) fn earlier_key(id: &TaskId, session: &SessionId) -> TaskId {
    TaskId::new(format!("{id}\0{session}"))
}

fn session(owner: &Option<Owner>) -> Option<&SessionId> {
    owner.as_ref().map(|owner| &owner.session)
}
