//! What is counted for each owner.
//!
//! # Invariants
//!
//! 1. `reserved`, `live` and `owed` change where a start is admitted or over, and where a record is inserted, ends, is
//!    dispatched or is removed, and nowhere else.
//! 2. An owner of whom nothing is left to say has no account.

use dsh_agent::InstanceId;
use rustc_hash::FxHashMap;

use super::teardown::Ending;

/// Identity of an exact owner; `None` is the bucket that all unowned work shares.
pub type Bucket = Option<InstanceId>;

/// One owner's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    /// How far its cleanup is; `None` before it was attached and when it has ended.
    pub(super) life: Option<OwnerLife>,
    /// Starts between their admission and their record.
    pub(super) reserved: u64,
    /// Records without an end.
    pub(super) live: u64,
    /// Records whose end was not dispatched: a disposal waits for them.
    pub(super) owed: u64,
}

/// Whether an owner's starts are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnerLife {
    Attached,
    /// Its cleanup waits for what is left.
    Ending,
}

/// All accounts. One look says what a start or an end has to know of an owner.
#[derive(Debug, Default)]
pub(super) struct Accounts(FxHashMap<Bucket, Account>);

impl Account {
    /// How much of the limit is used.
    pub(super) fn used(&self) -> u64 {
        self.live + self.reserved
    }
}

impl Accounts {
    pub(super) fn of(&self, bucket: Bucket) -> Account {
        self.0.get(&bucket).copied().unwrap_or_default()
    }

    pub(super) fn change<R>(&mut self, bucket: Bucket, change: impl FnOnce(&mut Account) -> R) -> R {
        let account = self.0.entry(bucket).or_default();
        let result = change(account);
        if *account == Account::default() {
            self.0.remove(&bucket);
        }
        result
    }

    /// Whether this holds for everybody whose tasks end.
    pub(super) fn all(&self, ending: Ending, holds: impl Fn(&Account) -> bool) -> bool {
        match ending {
            Ending::Owner(instance) => holds(&self.of(Some(instance))),
            Ending::Service => self.0.values().all(holds),
        }
    }
}
