//! Kill: claim, then ask the producer, then write.

use dsh_scope::contain;

use crate::{core, error::KillError, id::TaskId, outcome::CancelRequest};

use super::{Caller, Claim, KillOutcome, Killed, TaskRegistry, kept::Kept, session};

impl TaskRegistry {
    /// Asks a task to end, and returns at once; how it ends is up to its producer. A task that has ended is no error.
    ///
    /// A second kill asks again. When the claim is delivered the end of the task is not announced any more, unless it
    /// does not end as asked. The kill of a task of somebody who works for the caller is that owner's news, and its cause is
    /// [`Cause::Ancestor`](crate::Cause::Ancestor).
    ///
    /// # Errors
    ///
    /// [`KillError`]: the caller was refused, or the producer's hook failed, with the hook's own text. The task is as
    /// it was then.
    pub fn kill(&self, id: &TaskId, caller: Caller<'_>, reason: Option<&str>) -> Result<Killed, KillError> {
        let hook = |kept: &Kept, request: &CancelRequest| match contain(|| (kept.hooks.cancel)(request)) {
            Ok(result) => result.map_err(KillError::Cancel),
            Err(panicked) => Err(KillError::Panicked(panicked.to_string())),
        };
        let killed = self.shared.ledger.kill(id, session(caller), reason, hook)??;
        Ok(match killed {
            core::Killed::Requested {
                snapshot,
                work,
                claim,
            } => Killed {
                outcome: KillOutcome::Requested,
                snapshot: work.complete(snapshot),
                claim: Claim::of(claim),
            },
            core::Killed::AlreadyFinished(opened) => {
                let (claim, snapshot, kept) = Claim::opened(opened);
                Killed {
                    outcome: KillOutcome::AlreadyFinished,
                    snapshot: kept.complete(snapshot),
                    claim,
                }
            }
        })
    }
}
