//! The table behind its lock, and the procedures that take the lock more than once.

use std::sync::Arc;

use dsh_session::SessionId;

use crate::{
    error::AccessError,
    id::TaskId,
    outcome::{CancelRequest, Cause, Outcome},
    snapshot::TaskSnapshot,
};

use super::{
    Claim, Dispatched, Effect, Limits, Mutex, Range, Record, Standing, Stretch, Table, Told, Verdict,
};

/// All tasks of one registry.
pub struct Ledger<W> {
    table: Mutex<Table<W>>,
    /// Called, never under the lock, after whatever may have emitted effects or may let a disposal go on.
    wake: Box<dyn Fn(Left) + Send + Sync>,
}

/// What a change has left to do for the dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Effects,
    Nothing,
}

/// A record that a caller may use, with the claim of its end if it has ended. Who looks on claims nothing, and knows of
/// no notice.
pub struct Opened<W: Clone> {
    pub standing: Standing,
    pub snapshot: TaskSnapshot,
    pub work: W,
    pub announced: bool,
    pub claim: Claim<W>,
}

/// A record that was opened to be read. All of the output is unread to who looks on.
pub struct Reading<W: Clone> {
    pub opened: Opened<W>,
    pub unread: Vec<Stretch>,
    pub final_output: Option<String>,
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
    pub fn new(limits: Limits, wake: impl Fn(Left) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            table: Mutex::new(Table::new(limits)),
            wake: Box::new(wake),
        })
    }

    /// Looks or changes without waking the dispatcher.
    pub fn look<R>(&self, at: impl FnOnce(&mut Table<W>) -> R) -> R {
        at(&mut self.table.lock())
    }

    /// Changes, then wakes the dispatcher if that left it something to do, and disposals in any case.
    pub fn change<R>(&self, by: impl FnOnce(&mut Table<W>) -> R) -> R {
        let (result, left) = self.look(|table| (by(table), table.left()));
        (self.wake)(left);
        result
    }

    /// The same for what no disposal waits for: not for a start that ends, nor for a done event that was dispatched.
    pub(super) fn tell<R>(&self, by: impl FnOnce(&mut Table<W>) -> R) -> R {
        let (result, left) = self.look(|table| (by(table), table.left()));
        if left == Left::Effects {
            (self.wake)(left);
        }
        result
    }

    pub fn take_effects(&self) -> impl Iterator<Item = Effect<W>> + use<W> {
        self.look(Table::take_effects).into_iter()
    }

    pub fn settle(&self, id: &TaskId, outcome: Outcome, verdict: Verdict, now: u64) -> bool {
        self.change(|table| table.settle(id, outcome, verdict, now))
    }

    pub fn dispatched(&self, id: &TaskId, how: Dispatched) -> bool {
        self.change(|table| table.dispatched(id, how))
    }

    /// Opens a record to tell what it holds: if it has ended, the end is claimed.
    pub fn open(
        self: &Arc<Self>,
        id: &TaskId,
        caller: Option<&SessionId>,
    ) -> Result<Reading<W>, AccessError> {
        self.look(|table| {
            let (record, standing) = table.access(id, caller)?;
            let told = record.is_terminal().then_some(Told::End);
            let unread = match standing {
                Standing::Own => record.cursor.unread(),
                Standing::Above => vec![Stretch::WHOLE],
            };
            Ok(Reading {
                opened: self.opened(record, standing, told),
                unread,
                final_output: record.final_output().map(str::to_owned),
            })
        })
    }

    /// Opens a record to wait for its end: the end is claimed before it has come.
    pub fn open_waiting(
        self: &Arc<Self>,
        id: &TaskId,
        caller: Option<&SessionId>,
    ) -> Result<Opened<W>, AccessError> {
        self.look(|table| {
            let (record, standing) = table.access(id, caller)?;
            Ok(self.opened(record, standing, Some(Told::End)))
        })
    }

    /// Asks for an end. The kill is claimed before the hook is called, so an end that the hook brings about is owed
    /// to who tells of the kill; it is abandoned when the hook refuses, and the record is as it was. The kill of one who
    /// looks on is no news of the owner's own doing: nothing is claimed, and its cause says whose it was.
    pub fn kill<E>(
        self: &Arc<Self>,
        id: &TaskId,
        caller: Option<&SessionId>,
        reason: Option<&str>,
        hook: impl FnOnce(&W, &CancelRequest) -> Result<(), E>,
    ) -> Result<Result<Killed<W>, E>, AccessError> {
        let (opened, request, first) = self.look(|table| {
            let (record, standing) = table.access(id, caller)?;
            let request = CancelRequest {
                cause: match standing {
                    Standing::Own => Cause::Caller,
                    Standing::Above => Cause::Ancestor,
                },
                reason: reason.map(str::to_owned),
            };
            if record.is_terminal() {
                return Ok((self.opened(record, standing, Some(Told::End)), request, None));
            }
            let first = record.ask(request.clone());
            Ok((
                self.opened(record, standing, Some(Told::Kill)),
                request,
                Some(first),
            ))
        })?;
        let Some(first) = first else {
            return Ok(Ok(Killed::AlreadyFinished(opened)));
        };
        let Opened {
            work,
            snapshot,
            claim,
            ..
        } = opened;
        if let Err(error) = hook(&work, &request) {
            if first {
                self.look(|table| table.record(id).map(|record| record.unask()));
            }
            return Ok(Err(error));
        }
        // Its producer may have settled it meanwhile, and its owner may have gone: then there is nothing to write.
        let now = self.tell(|table| {
            let record = table.stop(id)?;
            record.ask(request);
            Some(record.snapshot())
        });
        let snapshot = now.unwrap_or(snapshot);
        Ok(Ok(Killed::Requested {
            snapshot,
            work,
            claim,
        }))
    }

    fn opened(self: &Arc<Self>, record: &mut Record<W>, standing: Standing, told: Option<Told>) -> Opened<W> {
        let (told, announced) = match standing {
            Standing::Own => (told, record.is_announced()),
            Standing::Above => (None, false),
        };
        if let Some(told) = told {
            record.claim(told);
        }
        Opened {
            standing,
            snapshot: record.snapshot(),
            work: record.work.clone(),
            announced,
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
