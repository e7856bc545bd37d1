//! Tasks of an earlier harness: they have ended, and their records are made again.

use std::sync::Arc;

use crate::{
    id::{Kind, TaskId},
    outcome::Outcome,
};

use super::{
    Ledger, Owner, Refused,
    reservation::attached,
    table::{Life, earlier_key},
};

/// A task that ended before there was this registry.
#[derive(Debug, Clone)]
pub struct Ended {
    pub id: TaskId,
    pub label: Arc<str>,
    pub outcome: Outcome,
    pub news: News,
}

/// Whether an end is news to the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It was told before.
    Old,
    /// It is announced.
    New,
}

impl<W: Clone> Ledger<W> {
    /// Makes the records of tasks that have ended, where there are none yet; `work` makes what the shell keeps of each
    /// from the id of its record.
    pub fn restore<E>(
        self: &Arc<Self>,
        owner: &Owner,
        tasks: &[(Ended, Kind)],
        now: u64,
        attach: impl FnOnce(super::Cleanup) -> Result<(), E>,
        work: impl Fn(&TaskId) -> W,
    ) -> Result<(), Refused<E>> {
        self.change(|table| {
            if table.life != Life::Open {
                return Err(Refused::Closing);
            }
            attached(table, owner, attach)?;
            for (ended, kind) in tasks {
                let key = earlier_key(&ended.id, &owner.session);
                if table.record(&key).is_some() {
                    continue;
                }
                let work = work(&key);
                table.restore(key, owner, ended, kind.clone(), work, now);
            }
            Ok(())
        })
    }
}
