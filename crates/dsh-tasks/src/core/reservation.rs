//! A start between its admission and its record.

use std::sync::Arc;

use crate::{id::TaskId, outcome::CancelRequest, vocabulary::RunningTask};

use super::{
    Facts, Ledger, Owner,
    table::{Bucket, Life, OwnerLife, Table, bucket_of},
    teardown::{Ending, torn},
};

/// A place in an owner's limit, taken before the producer runs. It counts like a live task until it is committed or
/// dropped, so neither a second start nor one nested in `run` gets past the limit.
pub struct Reservation<W: Clone> {
    ledger: Arc<Ledger<W>>,
    owner: Option<Owner>,
    open: bool,
}

/// Why a place was not given.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<E> {
    /// Disposal has begun.
    Closing,
    /// The owner's cleanup could not be attached.
    Owner(E),
    /// The bucket is full.
    Full { limit: u64, running: Vec<RunningTask> },
}

/// What became of a start.
pub enum Committed {
    /// It is a task.
    Task(TaskId),
    /// A disposal began meanwhile: it is a task, and is to be cancelled at once.
    Ending(TaskId, CancelRequest),
    /// That disposal is over: it is no task, and is to be cancelled at once.
    TooLate(CancelRequest),
}

/// Whether a start is held to its owner's limit. It counts against it in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Limited,
    /// The work runs already; refusing it would leave it without anybody to answer for it.
    Unrefusable,
}

/// Whether an owner's cleanup is attached already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    Attached,
    Missing,
}

impl<W: Clone> Ledger<W> {
    /// Admits a start. `attach` is called under the lock, before the limit is looked at: it attaches the owner's
    /// cleanup where it is missing, and checks that the owner still lives.
    pub fn reserve<E>(
        self: &Arc<Self>,
        owner: Option<Owner>,
        admission: Admission,
        now: u64,
        attach: impl FnOnce(Cleanup) -> Result<(), E>,
    ) -> Result<Reservation<W>, Refused<E>> {
        self.look(|table| {
            if table.life != Life::Open {
                return Err(Refused::Closing);
            }
            if let Some(owner) = &owner {
                attached(table, owner, attach)?;
            }
            let bucket = bucket_of(&owner);
            let limit = table.limits.per_owner;
            if admission == Admission::Limited && table.used(bucket) >= limit {
                let running = table.running(bucket, now);
                return Err(Refused::Full { limit, running });
            }
            *table.reserved.entry(bucket).or_default() += 1;
            Ok(())
        })?;
        Ok(Reservation {
            ledger: self.clone(),
            owner,
            open: true,
        })
    }
}

impl<W: Clone> Reservation<W> {
    /// Turns the place into a record.
    pub fn commit(mut self, facts: Facts, work: W, now: u64) -> Committed {
        let owner = self.owner.take();
        let bucket = bucket_of(&owner);
        self.open = false;
        self.ledger.change(|table| {
            release(table, bucket);
            let request = match fate(table, bucket) {
                Fate::Lives => None,
                Fate::Ends(request) => Some(request),
                Fate::IsOver(request) => return Committed::TooLate(request),
            };
            let id = table.insert(owner, facts, work, now);
            match request {
                None => Committed::Task(id),
                Some(request) => {
                    if let Some(record) = table.record(&id) {
                        torn(record, &request);
                    }
                    Committed::Ending(id, request)
                }
            }
        })
    }
}

impl<W: Clone> Drop for Reservation<W> {
    fn drop(&mut self) {
        if self.open {
            let bucket = bucket_of(&self.owner);
            self.ledger.change(|table| release(table, bucket));
        }
    }
}

enum Fate {
    Lives,
    Ends(CancelRequest),
    IsOver(CancelRequest),
}

fn fate<W: Clone>(table: &Table<W>, bucket: Bucket) -> Fate {
    let request = |ending: Ending| ending.request(table.limits.vocabulary);
    match table.life {
        Life::Open => {}
        Life::Closing => return Fate::Ends(request(Ending::Service)),
        Life::Closed => return Fate::IsOver(request(Ending::Service)),
    }
    let Some(instance) = bucket else {
        return Fate::Lives;
    };
    match table.owners.get(&instance) {
        Some(OwnerLife::Attached) => Fate::Lives,
        Some(OwnerLife::Ending) => Fate::Ends(request(Ending::Owner(instance))),
        None => Fate::IsOver(request(Ending::Owner(instance))),
    }
}

/// Attaches the cleanup of an owner where it is missing.
pub(super) fn attached<W: Clone, E>(
    table: &mut Table<W>,
    owner: &Owner,
    attach: impl FnOnce(Cleanup) -> Result<(), E>,
) -> Result<(), Refused<E>> {
    let cleanup = match table.is_attached(owner.instance) {
        true => Cleanup::Attached,
        false => Cleanup::Missing,
    };
    attach(cleanup).map_err(Refused::Owner)?;
    table.owners.insert(owner.instance, OwnerLife::Attached);
    Ok(())
}

fn release<W: Clone>(table: &mut Table<W>, bucket: Bucket) {
    if let Some(count) = table.reserved.get_mut(&bucket) {
        *count -= 1;
        if *count == 0 {
            table.reserved.remove(&bucket);
        }
    }
}
