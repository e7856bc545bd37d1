//! The pure core: records, claims, the consuming cursor, admission, ids. It does no input or output, knows no runtime
//! and no clock (times are passed in), calls nobody but the hook it is handed, and emits what is to happen as
//! [`Effect`] values.
//!
//! It is not part of the public interface. It can be reached from outside so that the reference model and the loom
//! models drive exactly the code that the registry runs.
//!
//! # Invariants
//!
//! 1. One lock, in [`Ledger`]. No hook, listener or drop of a producer's value runs under it.
//! 2. Effects are emitted under the lock, so their order is the order in which the records changed.
//! 3. A live record or a reservation is counted against its owner; nothing else is.
//! 4. An id is given when its record is inserted, and never again.

mod accounts;
mod claim;
mod cursor;
mod ledger;
mod ordinals;
mod record;
mod reservation;
mod restore;
mod sync;
mod table;
mod teardown;
mod views;

use std::sync::Arc;

use dsh_agent::{Agent, InstanceId};
use dsh_session::SessionId;

use crate::snapshot::TaskSnapshot;

pub use accounts::Bucket;
pub use claim::Claim;
pub use cursor::{Cursor, Range, Stretch};
pub use ledger::{Killed, Ledger, Left, Opened, Reading};
pub use record::{Dispatched, Facts, OWNER_DISPOSED, Record, Standing, Told, Verdict};
pub use reservation::{Admission, Cleanup, Committed, Refused, Reservation};
pub use restore::{Ended, News};
pub use sync::Mutex;
pub use table::{Life, Limits, Table};
pub use teardown::Ending;

/// Whose a task is: the exact instance for its life, the sessions for access.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    pub instance: InstanceId,
    pub session: SessionId,
    /// Those that look on: of the agents that it works for.
    pub above: Arc<[SessionId]>,
}

impl Owner {
    pub fn of(agent: &Agent, above: Arc<[SessionId]>) -> Self {
        Self {
            instance: agent.instance(),
            session: agent.id().clone(),
            above,
        }
    }
}

/// What is to happen after a change, in this order. Most ends are announced at once: both effects have one snapshot then.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<W> {
    /// Release who waits for this end.
    Settled {
        /// The record as it ended.
        snapshot: Arc<TaskSnapshot>,
        /// What the shell keeps of it.
        work: W,
    },
    /// Tell the observers of this owner's tasks; `None` is everybody's view. There is none while nobody observes.
    Changed(Option<SessionId>),
    /// Call the done listeners.
    Done {
        /// The record as it ended.
        snapshot: Arc<TaskSnapshot>,
        /// What the shell keeps of it.
        work: W,
    },
    /// Let go of what was kept of a record that is no more.
    Dropped(W),
}
