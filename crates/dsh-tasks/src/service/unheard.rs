//! A start that has to reach who asked for it.

use std::{fmt, sync::Arc};

use dsh_agent::Agent;

use crate::id::TaskId;

use super::{Caller, TaskRegistry};

/// Why a task is ended that nobody knows of.
const DROPPED: &str = "the answer to its start was dropped";

/// The duty to say whether the model got the id of a task.
///
/// [`deliver`](Self::deliver) says that it did. Dropping it says that it did not: nobody could read or stop the task, so it
/// is asked to end. Its end is told like any other, so that nothing happens behind its owner's back.
#[must_use = "dropping a claim says that the model was not told"]
pub struct StartClaim {
    tasks: TaskRegistry,
    id: TaskId,
    owner: Option<Arc<Agent>>,
    heard: bool,
}

impl TaskRegistry {
    /// Claims the telling of an id, for a task that `owner` has just started.
    pub fn claim_start(&self, id: &TaskId, owner: Caller<'_>) -> StartClaim {
        StartClaim {
            tasks: self.clone(),
            id: id.clone(),
            owner: owner.cloned(),
            heard: false,
        }
    }
}

impl StartClaim {
    /// The model got it.
    pub fn deliver(mut self) {
        self.heard = true;
    }
}

impl Drop for StartClaim {
    fn drop(&mut self) {
        if self.heard {
            return;
        }
        // The claim of the kill is dropped, too: nobody was told of it either. A refusal means that the task is gone.
        match self.tasks.kill(&self.id, self.owner.as_ref(), Some(DROPPED)) {
            Ok(_) => tracing::info!(id = %self.id, "the answer to a start was dropped: its task is ended"),
            Err(error) => tracing::debug!(id = %self.id, %error, "the answer to a start was dropped"),
        }
    }
}

impl fmt::Debug for StartClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartClaim")
            .field("task", &self.id)
            .finish_non_exhaustive()
    }
}
