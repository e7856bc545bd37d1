//! The table behind its lock, and the procedures that take the lock more than once.

use std::sync::Arc;

use dsh_session::SessionId;

use crate::{
    error::AccessError,
    id::TaskId,
    outcome::{CancelRequest, Outcome},
    snapshot::TaskSnapshot,
};

use super::{Claim, Dispatched, Effect, Limits, Mutex, Range, Stretch, Table, Told, Verdict};

/// All tasks of one registry.
pub struct Ledger<W> {
    table: Mutex<Table<W>>,
    /// Called, never under the lock, after whatever may have emitted effects.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// A record that a caller may use, with the claim of its end if it has ended.
pub struct Opened<W: Clone> {
    pub snapshot: TaskSnapshot,
    pub work: W,
    pub unread: Vec<Stretch>,
    pub final_output: Option<String>,
    pub announced: bool,
    pub claim: Claim<W>,
}

/// What a kill came to.
pub enum Killed<W: Clone> {
    Requested {
        snapshot: TaskSnapshot,
        work: W,
        claim: Claim<W>,
    },
    AlreadyFinished(Opened<W>),
}

impl<W: Clone> Ledger<W> {
    pub fn new(limits: Limits, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(Table::new(limits)),
            wake: Box::new(wake),
        })
    }

    /// Looks or changes without waking the dispatcher.
    pub fn look<R>(&self, at: impl FnOnce(&mut Table<W>) -> R) -> R {
        at(&mut self.table.lock())
    }

    /// Changes, then wakes the dispatcher.
    pub fn change<R>(&self, by: impl FnOnce(&mut Table<W>) -> R) -> R {
        let result = self.look(by);
        (self.wake)();
        result
    }

    pub fn take_effects(&self) -> impl Iterator<Item = Effect<W>> + use<W> {
        self.look(Table::take_effects).into_iter()
    }

    pub fn settle(&self, id: &TaskId, outcome: Outcome, verdict: Verdict, now: u64) -> bool {
        self.change(|table| table.settle(id, outcome, verdict, now))
    }

    pub fn dispatched(&self, id: &TaskId, how: Dispatched) {
        self.change(|table| table.dispatched(id, how));
    }

    /// Opens a record to tell what it holds: if it has ended, the end is claimed.
    pub fn open(self: &Arc<Self>, id: &TaskId, caller: Option<&SessionId>) -> Result<Opened<W>, AccessError> {
        self.look(|table| {
            let record = table.access(id, caller)?;
            let told = record.is_terminal().then_some(Told::End);
            Ok(self.opened(record, told))
        })
    }

    /// Opens a record to wait for its end: the end is claimed before it has come.
    pub fn open_waiting(
        self: &Arc<Self>,
        id: &TaskId,
        caller: Option<&SessionId>,
    ) -> Result<Opened<W>, AccessError> {
        self.look(|table| {
            let record = table.access(id, caller)?;
            Ok(self.opened(record, Some(Told::End)))
        })
    }

    /// Asks for an end. The kill is claimed before the hook is called, so an end that the hook brings about is owed
    /// to who tells of the kill; it is abandoned when the hook refuses, and the record is as it was.
    pub fn kill<E>(
        self: &Arc<Self>,
        id: &TaskId,
        caller: Option<&SessionId>,
        request: &CancelRequest,
        hook: impl FnOnce(&W) -> Result<(), E>,
    ) -> Result<Result<Killed<W>, E>, AccessError> {
        let (opened, was_terminal, first) = self.look(|table| {
            let record = table.access(id, caller)?;
            if record.is_terminal() {
                return Ok((self.opened(record, Some(Told::End)), true, false));
            }
            let first = record.ask(request.clone());
            Ok((self.opened(record, Some(Told::Kill)), false, first))
        })?;
        if was_terminal {
            return Ok(Ok(Killed::AlreadyFinished(opened)));
        }
        let Opened {
            work,
            snapshot,
            claim,
            ..
        } = opened;
        if let Err(error) = hook(&work) {
            if first {
                self.look(|table| table.record(id).map(|record| record.unask()));
            }
            return Ok(Err(error));
        }
        // Its producer may have settled it meanwhile, and its owner may have gone: then there is nothing to write.
        let now = self.change(|table| {
            table.stop(id);
            let record = table.record(id)?;
            record.ask(request.clone());
            Some(record.snapshot())
        });
        let snapshot = now.unwrap_or(snapshot);
        Ok(Ok(Killed::Requested {
            snapshot,
            work,
            claim,
        }))
    }

    fn opened(self: &Arc<Self>, record: &mut super::Record<W>, told: Option<Told>) -> Opened<W> {
        if let Some(told) = told {
            record.claim(told);
        }
        Opened {
            snapshot: record.snapshot(),
            work: record.work.clone(),
            unread: record.cursor.unread(),
            final_output: record.final_output().map(str::to_owned),
            announced: record.is_announced(),
            claim: Claim::new(self.clone(), record.id.clone(), told),
        }
    }

    pub(super) fn lease(&self, id: &TaskId, range: &Range) {
        self.look(|table| {
            if let Some(record) = table.record(id) {
                record.cursor.lease(range);
            }
        });
    }
}
