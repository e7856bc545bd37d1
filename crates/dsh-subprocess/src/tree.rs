use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::facts::{LeaderExit, Member, TreeEnd};
use crate::group::Group;
use crate::{keeper, platform};

/// A running process, and what it starts.
///
/// The only way to wait for it and to end it. Share it in an [`Arc`]. Dropping it kills the group before
/// the drop returns; the crate's own thread then reaps the leader, with or without a runtime.
#[derive(Debug)]
pub struct ProcessTree {
    shared: Arc<Shared>,
}

/// What the handle and the thread that watches the tree have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) group: Group,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) kill_bound: Duration,
}

/// What is known of a tree so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Status {
    pub(crate) leader: Option<LeaderExit>,
    pub(crate) end: Option<TreeEnd>,
}

impl ProcessTree {
    pub(crate) fn new(shared: Arc<Shared>) -> ProcessTree {
        ProcessTree { shared }
    }

    /// The process id of the leader, which is the id of its group.
    pub fn pid(&self) -> u32 {
        self.shared.group.leader().as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the leader has exited. Others of its group may live on.
    ///
    /// # Cancel safety
    ///
    /// Safe: waiting changes nothing, and any number of callers get the same answer.
    pub async fn leader_exit(&self) -> LeaderExit {
        self.when(|status| status.leader).await
    }

    /// How the leader exited, if it has.
    pub fn leader_exited(&self) -> Option<LeaderExit> {
        self.shared.status.borrow().leader
    }

    /// Who lives in the group now, the leader not counted.
    ///
    /// Reads `/proc`, which takes well below a millisecond on most machines. Empty once the group was seen
    /// empty, and always where the system does not name members (elsewhere than on Linux).
    pub fn members(&self) -> Vec<Member> {
        let leader = self.shared.group.leader();
        if !self.shared.group.is_pinned() {
            return Vec::new();
        }
        let living = platform::look(leader).living;
        let members = living
            .into_iter()
            .filter(|pid| *pid != leader)
            .map(platform::describe)
            .collect();
        // The watching thread may have let the number go during the look; what was seen then may belong
        // to a stranger. While the pin lasts it cannot.
        if self.shared.group.is_pinned() {
            members
        } else {
            Vec::new()
        }
    }

    /// Ends the tree: TERM and CONT to the group before this returns, and KILL after `grace`, until the
    /// group is empty, whatever its leader did.
    ///
    /// Another call never signals again; it only brings the KILL forward. Without effect once the group
    /// was seen empty.
    pub fn terminate(&self, grace: Duration) {
        self.shared.group.terminate(Instant::now().checked_add(grace));
        keeper::wake();
    }

    /// Waits until the group was seen empty, or until survivors of a KILL are named.
    ///
    /// Killing goes on after survivors were named; once they are gone, a new call says so.
    ///
    /// # Cancel safety
    ///
    /// Safe: waiting changes nothing, and any number of callers get the answer.
    pub async fn ended(&self) -> TreeEnd {
        self.when(|status| status.end.clone()).await
    }

    async fn when<T>(&self, fact: impl Fn(&Status) -> Option<T>) -> T {
        let mut status = self.shared.status.subscribe();
        loop {
            if let Some(value) = fact(&status.borrow_and_update()) {
                return value;
            }
            if status.changed().await.is_err() {
                // We hold the sender ourselves, so it cannot close while we wait.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        self.shared.group.kill();
        keeper::wake();
    }
}
