//! What a caller gets, with the duty to say whether the model got it.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use dsh_agent::{Agent, NoticeHold, NoticeKey};

use crate::{
    core::{self, Dispatched, Opened},
    snapshot::TaskSnapshot,
};

use super::kept::Kept;

/// What a read found.
#[derive(Debug)]
pub struct TaskRead {
    /// The output since what was delivered before, or the final output.
    pub text: String,
    /// The task as it was before its output was read: a terminal status means that this was all of it, unless the
    /// text ends by saying how much more there is.
    pub snapshot: TaskSnapshot,
    /// Says whether the model got the text, and the end if the task had ended.
    pub claim: Claim,
}

/// What a wait came to.
#[derive(Debug)]
pub struct Waited {
    /// The task when the wait ended: terminal, or live when the time was up. All who waited share it.
    pub snapshot: Arc<TaskSnapshot>,
    /// Says whether the model was told of the end; of no effect when the task is live.
    pub claim: Claim,
}

/// What a kill came to.
#[derive(Debug)]
pub struct Killed {
    /// Whether there was something to end.
    pub outcome: KillOutcome,
    /// The task after the request.
    pub snapshot: TaskSnapshot,
    /// Says whether the model was told.
    pub claim: Claim,
}

/// Whether there was something to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillOutcome {
    /// The task was asked to end.
    Requested,
    /// It had ended before.
    AlreadyFinished,
}

/// Output that was looked at without consuming it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The output from the offset on.
    pub text: String,
    /// Where to go on.
    pub next: u64,
    /// Source bytes of the range that the text does not show.
    pub omitted: u64,
    /// The task as it was before its output was read.
    pub snapshot: TaskSnapshot,
}

/// The duty to say whether the model got what this came with.
///
/// [`deliver`](Self::deliver) says that it did: the output is consumed, the notice of the end is spent. Dropping it
/// says that it did not: the output is read again, and the end is told by whoever comes next. While a claim on an end
/// lives, no notice of that end is shown to the owner.
#[must_use = "dropping a claim says that the model was not told"]
pub struct Claim {
    inner: core::Claim<Kept>,
    /// Ends after `inner` when both are dropped.
    notice: Option<HeldNotice>,
}

/// The notice of an end that was announced before somebody came to tell of it.
struct HeldNotice {
    hold: NoticeHold,
    key: NoticeKey,
    owner: Weak<Agent>,
}

impl Claim {
    /// The model got it.
    pub fn deliver(self) {
        let Self { inner, notice } = self;
        let Some(HeldNotice { hold, key, owner }) = notice else {
            inner.deliver();
            return;
        };
        // The listener that queues the notice may be under way. Retracted first: a notice that is still to come finds
        // a tombstone. Told second: either this sees that the listeners are done, or they see that it was told; who
        // comes last takes the tombstone away.
        hold.retract();
        if inner.deliver() == Some(Dispatched::Over)
            && let Some(owner) = owner.upgrade()
        {
            owner.inbox().forget(&key);
        }
    }

    pub(super) fn of(inner: core::Claim<Kept>) -> Self {
        Self { inner, notice: None }
    }

    /// The claim of an opened record: of its end, with the notice of it, if it has ended.
    pub(super) fn opened(opened: Opened<Kept>) -> (Self, TaskSnapshot, Kept) {
        let Opened {
            snapshot,
            work,
            announced,
            claim,
            ..
        } = opened;
        let notice = match work.owner() {
            Some(owner) if announced => Some(held(&owner, work.notice_key(&snapshot.id))),
            _ => None,
        };
        let claim = Self { inner: claim, notice };
        (claim, snapshot, work)
    }

    pub(super) fn core(&mut self) -> &mut core::Claim<Kept> {
        &mut self.inner
    }
}

fn held(owner: &Arc<Agent>, key: NoticeKey) -> HeldNotice {
    HeldNotice {
        hold: owner.inbox().hold(&key),
        key,
        owner: Arc::downgrade(owner),
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("task", self.inner.id())
            .finish_non_exhaustive()
    }
}
