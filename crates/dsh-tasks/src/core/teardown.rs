//! The end of an owner, and of the registry.

use std::sync::Arc;

use dsh_agent::InstanceId;

use crate::{
    id::TaskId,
    outcome::{CancelRequest, Cause, Outcome, OutcomeStatus},
    vocabulary::Vocabulary,
};

use super::{
    Ledger, OWNER_DISPOSED, Record, Verdict,
    accounts::{Account, OwnerLife},
    table::{Life, bucket_of},
};

/// Whose tasks end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Those of one exact owner.
    Owner(InstanceId),
    /// All.
    Service,
}

impl Ending {
    pub fn request(self, words: Vocabulary) -> CancelRequest {
        let (cause, reason) = match self {
            Self::Owner(_) => (Cause::OwnerDisposed, OWNER_DISPOSED),
            Self::Service => (Cause::ServiceDisposed, words.service_disposed()),
        };
        CancelRequest {
            cause,
            reason: Some(reason.to_owned()),
        }
    }

    pub(super) fn includes<W>(self, record: &Record<W>) -> bool {
        match self {
            Self::Owner(instance) => bucket_of(&record.owner) == Some(instance),
            Self::Service => true,
        }
    }
}

impl<W: Clone> Ledger<W> {
    /// Begins a disposal: starts are refused, the report of every task is claimed, and what is live comes back to be
    /// cancelled.
    pub fn begin(self: &Arc<Self>, ending: Ending) -> (CancelRequest, Vec<(TaskId, W)>) {
        self.change(|table| {
            match ending {
                Ending::Owner(instance) => {
                    let ends = |account: &mut Account| account.life = Some(OwnerLife::Ending);
                    table.accounts.change(Some(instance), ends);
                }
                Ending::Service => table.life = Life::Closing,
            }
            let request = ending.request(table.limits.vocabulary);
            let mut live = Vec::new();
            for id in table.ending(ending) {
                let Some(record) = table.record(&id) else {
                    continue;
                };
                let work = record.work.clone();
                let is_live = torn(record, &request);
                if is_live {
                    live.push((id, work));
                } else {
                    // Nobody's claim holds up a disposal.
                    table.announce(&id);
                }
            }
            (request, live)
        })
    }

    /// The end of one task in the words of its producer, while a disposal that includes it may be under way.
    ///
    /// The work of a task may be taken down by the disposal before that reaches the registry: an owner's scope closes the
    /// newest first, and the work registered later than the cleanup here. What was killed by then was killed by the
    /// disposal, unless somebody asked before, and is its to report.
    pub fn settle_amid(&self, id: &TaskId, outcome: Outcome, disposal: Option<Ending>, now: u64) -> bool {
        self.change(|table| {
            let request = disposal.map(|ending| ending.request(table.limits.vocabulary));
            if let (Some(request), OutcomeStatus::Killed) = (request, outcome.status)
                && let Some(record) = table.record(id)
            {
                torn(record, &request);
            }
            table.settle(id, outcome, Verdict::Producer, now)
        })
    }

    /// Calls a hook to cancel one task of a disposal. A refusal ends the record, since it may never settle: `forced`
    /// adds to that end what is known, and the time.
    pub fn cancel(
        &self,
        id: &TaskId,
        hook: impl FnOnce() -> Result<(), String>,
        forced: impl FnOnce(Outcome) -> (Outcome, u64),
    ) -> Result<(), String> {
        match hook() {
            Ok(()) => {
                self.change(|table| {
                    table.stop(id);
                });
                Ok(())
            }
            Err(error) => {
                let detail = format!("cancel threw during teardown; work may be orphaned: {error}");
                let (outcome, now) = forced(Outcome::failed().detail(detail));
                self.settle(id, outcome, Verdict::Forced, now);
                Err(error)
            }
        }
    }

    /// Whether no start is under way and every record has ended and was announced.
    pub fn is_idle(&self, ending: Ending) -> bool {
        self.look(|table| {
            let is_idle = |account: &Account| account.reserved == 0 && account.owed == 0;
            table.accounts.all(ending, is_idle)
        })
    }

    /// Whether every record has ended and was announced.
    pub fn is_announced(&self, ending: Ending) -> bool {
        self.look(|table| table.accounts.all(ending, |account| account.owed == 0))
    }

    /// Stops waiting: a start that is still under way comes too late. What has not ended comes back.
    pub fn shut(&self, ending: Ending) -> Vec<(TaskId, W)> {
        self.look(|table| {
            match ending {
                Ending::Owner(instance) => {
                    table
                        .accounts
                        .change(Some(instance), |account| account.life = None);
                }
                Ending::Service => table.life = Life::Closed,
            }
            let mut live = Vec::new();
            for id in table.ending(ending) {
                let work = table.record(&id).filter(|record| !record.is_terminal());
                let work = work.map(|record| record.work.clone());
                live.extend(work.map(|work| (id, work)));
            }
            live
        })
    }

    /// Drops the records of a disposal that was shut.
    pub fn clear(&self, ending: Ending) {
        self.change(|table| table.remove(table.ending(ending)));
    }
}

/// Claims the report of a record for a disposal; whether it is live.
pub(super) fn torn<W>(record: &mut Record<W>, request: &CancelRequest) -> bool {
    record.tear_down();
    if record.is_terminal() {
        return false;
    }
    record.ask(request.clone());
    true
}
