//! All records, and who may use them. Everything here runs under the ledger's lock.

use std::collections::{BTreeMap, HashMap, VecDeque};

use dsh_agent::InstanceId;
use dsh_session::SessionId;

use crate::{
    error::AccessError,
    id::{Kind, TaskId},
    outcome::Outcome,
    vocabulary::{RunningTask, Vocabulary},
};

use super::views::Views;
use super::{
    Dispatched, Effect, Ended, Facts, News, Owner, Record, Standing, Told, Verdict, ordinals::Ordinals,
};

/// What the core is configured with.
#[derive(Debug, Clone)]
pub struct Limits {
    pub per_owner: u64,
    pub retained_unowned: usize,
    pub vocabulary: Vocabulary,
}

/// Identity of an exact owner; `None` is the bucket that all unowned work shares.
pub type Bucket = Option<InstanceId>;

#[derive(Debug)]
pub struct Table<W> {
    pub(super) limits: Limits,
    pub(super) life: Life,
    /// Owners whose cleanup is attached and has not ended.
    pub(super) owners: HashMap<InstanceId, OwnerLife>,
    /// Starts between their admission and their record.
    pub(super) reserved: HashMap<Bucket, u64>,
    /// How many live tasks each has.
    live: HashMap<Bucket, u64>,
    /// In registration order. Boxed: a node of the tree has room for eleven, of which five are empty.
    records: BTreeMap<u64, Box<Record<W>>>,
    index: HashMap<TaskId, u64>,
    views: Views,
    next: u64,
    counters: HashMap<Kind, u64>,
    /// Unowned terminal records, oldest end first.
    ended_unowned: VecDeque<TaskId>,
    expired: HashMap<String, Ordinals>,
    /// Whether there ever was a task of an earlier harness.
    has_earlier: bool,
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

/// Whether an owner's starts are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerLife {
    Attached,
    /// Its cleanup waits for what is left.
    Ending,
}

impl<W: Clone> Table<W> {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            life: Life::Open,
            owners: HashMap::new(),
            reserved: HashMap::new(),
            live: HashMap::new(),
            records: BTreeMap::new(),
            index: HashMap::new(),
            views: Views::default(),
            next: 0,
            counters: HashMap::new(),
            ended_unowned: VecDeque::new(),
            expired: HashMap::new(),
            has_earlier: false,
            effects: VecDeque::new(),
        }
    }

    /// Whether the cleanup of an owner is attached and has not begun.
    pub fn is_attached(&self, owner: InstanceId) -> bool {
        self.owners.get(&owner) == Some(&OwnerLife::Attached)
    }

    /// Whether disposal has begun.
    pub fn is_closing(&self) -> bool {
        self.life != Life::Open
    }

    pub fn take_effects(&mut self) -> VecDeque<Effect<W>> {
        std::mem::take(&mut self.effects)
    }

    /// Whether something is to happen that has not been taken.
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    pub fn insert(&mut self, owner: Option<Owner>, mut facts: Facts, work: W, now: u64) -> TaskId {
        if let Some((known, _)) = self.counters.get_key_value(&facts.kind) {
            // All tasks of a kind share its name.
            facts.kind = known.clone();
        }
        let counter = self.counters.entry(facts.kind.clone()).or_default();
        *counter += 1;
        let id = TaskId::nth(&facts.kind, *counter);
        *self.live.entry(bucket_of(&owner)).or_default() += 1;
        self.keep(Record::new(id.clone(), owner, facts, work, now));
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
        let mut record = Record::new(key.clone(), Some(owner.clone()), facts, work, now);
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
        self.changed(&record.owner);
        self.index.insert(record.id.clone(), self.next);
        self.views.add(&record.owner, self.next);
        self.records.insert(self.next, Box::new(record));
        self.next += 1;
    }

    /// The record, if this caller may use it, and how it stands to it.
    pub fn access(
        &mut self,
        id: &TaskId,
        caller: Option<&SessionId>,
    ) -> Result<(&mut Record<W>, Standing), AccessError> {
        let vocabulary = self.limits.vocabulary;
        let id = id.clone();
        let earlier = caller.filter(|_| self.has_earlier);
        let earlier = earlier.and_then(|session| self.index.get(&earlier_key(&id, session)));
        let Some(&at) = earlier.or_else(|| self.index.get(&id)) else {
            if self.is_expired(&id) {
                return Err(AccessError::Expired { vocabulary, id });
            }
            if self.records().any(|record| record.name == id) {
                return Err(AccessError::Foreign { vocabulary, id });
            }
            let known = self.reachable(caller).map(|record| record.name.clone()).collect();
            return Err(AccessError::Unknown {
                vocabulary,
                id,
                known,
            });
        };
        let record = self.records.get_mut(&at).map(Box::as_mut);
        let used = record.and_then(|record| {
            let standing = record.standing(caller)?;
            Some((record, standing))
        });
        used.ok_or(AccessError::Foreign { vocabulary, id })
    }

    pub fn record(&mut self, id: &TaskId) -> Option<&mut Record<W>> {
        let at = self.index.get(id)?;
        self.records.get_mut(at).map(Box::as_mut)
    }

    pub fn records(&self) -> impl Iterator<Item = &Record<W>> {
        self.records.values().map(Box::as_ref)
    }

    /// The caller's own, and nobody's.
    pub fn own(&self, caller: Option<&SessionId>) -> impl Iterator<Item = &Record<W>> {
        let at = self.views.own(caller).into_iter();
        at.filter_map(|at| self.records.get(&at).map(Box::as_ref))
    }

    /// All that the caller may use.
    pub fn reachable(&self, caller: Option<&SessionId>) -> impl Iterator<Item = &Record<W>> {
        let at = self.views.reachable(caller).into_iter();
        at.filter_map(|at| self.records.get(&at).map(Box::as_ref))
    }

    /// How much of its limit a bucket has used.
    pub fn used(&self, bucket: Bucket) -> u64 {
        let count = |counts: &HashMap<Bucket, u64>| counts.get(&bucket).copied().unwrap_or(0);
        count(&self.live) + count(&self.reserved)
    }

    pub(super) fn running(&self, bucket: Bucket, now: u64) -> Vec<RunningTask> {
        let live = self
            .records()
            .filter(|record| !record.is_terminal() && bucket_of(&record.owner) == bucket);
        let running = live.map(|record| RunningTask {
            id: record.id.clone(),
            age_ms: now.saturating_sub(record.started_at()),
        });
        running.collect()
    }

    pub fn settle(&mut self, id: &TaskId, outcome: Outcome, verdict: Verdict, now: u64) -> bool {
        let words = self.limits.vocabulary;
        let Some(record) = self.record(id) else {
            return false;
        };
        if !record.settle(outcome, verdict, now, words) {
            return false;
        }
        let (work, owner) = (record.work.clone(), record.owner.clone());
        let snapshot = Box::new(record.snapshot());
        self.ended(bucket_of(&owner));
        if owner.is_none() {
            self.ended_unowned.push_back(id.clone());
        }
        self.effects.push_back(Effect::Settled { snapshot, work });
        self.changed(&owner);
        self.announce(id);
        true
    }

    /// Writes `Stopping` and says so to the observers.
    pub fn stop(&mut self, id: &TaskId) {
        if let Some(record) = self.record(id)
            && record.stop()
        {
            let owner = record.owner.clone();
            self.changed(&owner);
        }
    }

    pub fn end_claim(&mut self, id: &TaskId, end: impl FnOnce(&mut Record<W>)) {
        if let Some(record) = self.record(id) {
            end(record);
            self.announce(id);
            self.evict();
        }
    }

    pub fn claim(&mut self, id: &TaskId, what: Told) {
        if let Some(record) = self.record(id) {
            record.claim(what);
        }
    }

    /// Emits the done event if it is due.
    pub fn announce(&mut self, id: &TaskId) {
        if let Some(record) = self.record(id)
            && record.announce()
        {
            let (snapshot, work) = (Box::new(record.snapshot()), record.work.clone());
            self.effects.push_back(Effect::Done { snapshot, work });
        }
    }

    /// The listeners of a done event were called, or have also ended; whether somebody has told the end meanwhile.
    pub fn dispatched(&mut self, id: &TaskId, how: Dispatched) -> bool {
        let told = self.record(id).is_some_and(|record| {
            record.set_dispatched(how);
            record.is_told()
        });
        self.evict();
        told
    }

    /// Drops records. What the shell kept of them goes with an effect: its drop is foreign code.
    pub fn remove(&mut self, gone: impl Fn(&Record<W>) -> bool) {
        let at = self.records.iter().filter(|(_, record)| gone(record));
        self.remove_at(at.map(|(&at, _)| at).collect());
    }

    fn remove_at(&mut self, at: Vec<u64>) {
        let mut told: Vec<Option<SessionId>> = Vec::new();
        for at in at {
            let Some(record) = self.records.remove(&at).map(|record| *record) else {
                continue;
            };
            self.index.remove(&record.id);
            self.views.remove(&record.owner, at);
            if !record.is_terminal() {
                self.ended(bucket_of(&record.owner));
            }
            if record.owner.is_none() {
                self.ended_unowned.retain(|id| *id != record.id);
            }
            let session = session(&record.owner).cloned();
            self.effects.push_back(Effect::Dropped(record.work));
            if !told.contains(&session) {
                told.push(session.clone());
                self.effects.push_back(Effect::Changed(session));
            }
        }
    }

    /// Drops the unowned records that ended first, beyond what is kept. Who is about to tell an end keeps its record.
    fn evict(&mut self) {
        while self.ended_unowned.len() > self.limits.retained_unowned {
            let evictable = |id: &&TaskId| {
                let record = self.index.get(*id).and_then(|at| self.records.get(at));
                record.is_some_and(|record| record.dispatched().is_some() && !record.is_claimed())
            };
            let Some(id) = self.ended_unowned.iter().find(evictable).cloned() else {
                return;
            };
            if let Some((kind, ordinal)) = id.parts() {
                self.expired.entry(kind.to_owned()).or_default().insert(ordinal);
            }
            self.remove_at(self.index.get(&id).copied().into_iter().collect());
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

    /// One live task of this bucket is none any more.
    fn ended(&mut self, bucket: Bucket) {
        if let Some(count) = self.live.get_mut(&bucket) {
            *count -= 1;
            if *count == 0 {
                self.live.remove(&bucket);
            }
        }
    }

    fn changed(&mut self, owner: &Option<Owner>) {
        self.effects.push_back(Effect::Changed(session(owner).cloned()));
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
