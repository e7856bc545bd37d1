//! A start between its admission and its record.

use std::sync::Arc;

use crate::{id::TaskId, outcome::CancelRequest, vocabulary::RunningTask};

use super::{
    Facts, Ledger, Owner,
    accounts::{Account, Bucket, OwnerLife},
    table::{Life, Table, bucket_of},
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
            let limit = table.limits.per_owner;
            let admitted = table.accounts.change(bucket_of(&owner), |account| {
                let is_full = admission == Admission::Limited && account.used() >= limit;
                account.reserved += u64::from(!is_full);
                !is_full
            });
            if !admitted {
                let running = table.running(&owner, now);
                return Err(Refused::Full { limit, running });
            }
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
            let owner_life = release(table, bucket);
            let request = match fate(table, bucket, owner_life) {
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

fn fate<W: Clone>(table: &Table<W>, bucket: Bucket, owner: Option<OwnerLife>) -> Fate {
    let request = |ending: Ending| ending.request(table.limits.vocabulary);
    match table.life {
        Life::Open => {}
        Life::Closing => return Fate::Ends(request(Ending::Service)),
        Life::Closed => return Fate::IsOver(request(Ending::Service)),
    }
    let Some(instance) = bucket else {
        return Fate::Lives;
    };
    match owner {
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
    if cleanup == Cleanup::Missing {
        let attached = |account: &mut Account| account.life = Some(OwnerLife::Attached);
        table.accounts.change(Some(owner.instance), attached);
    }
    Ok(())
}

/// Gives a place back; how far the cleanup of its owner is.
fn release<W: Clone>(table: &mut Table<W>, bucket: Bucket) -> Option<OwnerLife> {
    table.accounts.change(bucket, |account| {
        account.reserved -= 1;
        account.life
    })
}
