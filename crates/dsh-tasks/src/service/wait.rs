//! Wait: the end is claimed before it comes.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{error::WaitError, id::TaskId};

use super::{Caller, Claim, TaskRegistry, Waited, kept::Kept, session};

impl TaskRegistry {
    /// Waits for the end of a task, at most `timeout_ms` milliseconds (fractions allowed). Time that is up is a
    /// success: the snapshot says that the task is live, and it lives on.
    ///
    /// # Errors
    ///
    /// In this order: the caller is refused; the timeout is no positive number; the task is live and `token` is
    /// cancelled, before or while waiting. A task that has ended is returned whatever the token says.
    ///
    /// # Cancel safety
    ///
    /// Dropping this future ends only the wait. If the task has ended meanwhile, its end is announced as if nobody
    /// had waited.
    pub async fn wait(
        &self,
        id: &TaskId,
        caller: Caller<'_>,
        timeout_ms: f64,
        token: &CancellationToken,
    ) -> Result<Waited, WaitError> {
        let opened = self.shared.ledger.open_waiting(id, session(caller))?;
        if !(timeout_ms.is_finite() && timeout_ms > 0.0) {
            return Err(WaitError::Timeout(timeout_ms));
        }
        if opened.snapshot.status.is_terminal() {
            let (claim, snapshot, kept) = Claim::opened(opened);
            let snapshot = Arc::new(kept.complete(snapshot));
            return Ok(Waited { snapshot, claim });
        }
        // The end is claimed before it comes, so an end that comes while this waits is owed to this, whoever of the
        // three below wakes it; the claim is given back when it is dropped.
        let (kept, waiting) = (opened.work, opened.claim);
        let why = woken(&kept, timeout_ms, token).await;
        if let Some(snapshot) = kept.ended.snapshot() {
            let claim = Claim::of(waiting);
            return Ok(Waited { snapshot, claim });
        }
        let (snapshot, claim) = waiting.resolve();
        let snapshot = snapshot.map(|snapshot| Arc::new(kept.complete(snapshot)));
        // A record that is gone was told to its waiters before it went.
        let snapshot = snapshot.or_else(|| kept.ended.snapshot());
        match snapshot {
            Some(snapshot) if snapshot.status.is_terminal() || why != Woken::Aborted => Ok(Waited {
                snapshot,
                claim: Claim::of(claim),
            }),
            _ => Err(WaitError::Aborted),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Woken {
    Ended,
    Aborted,
    TimeIsUp,
}

async fn woken(kept: &Kept, timeout_ms: f64, token: &CancellationToken) -> Woken {
    let limit = Duration::try_from_secs_f64(timeout_ms / 1000.0).unwrap_or(Duration::MAX);
    tokio::select! {
        biased;
        () = kept.ended.wait() => Woken::Ended,
        () = token.cancelled() => Woken::Aborted,
        () = tokio::time::sleep(limit) => Woken::TimeIsUp,
    }
}
