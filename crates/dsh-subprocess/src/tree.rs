//! The handle of a tree.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::facts::{LeaderExit, Member, TreeEnd};
use crate::group::Grouped;
#[cfg(target_os = "linux")]
use crate::guarded::Guarded;
use crate::keeper;

/// A running process, and what it starts.
///
/// The only way to wait for it and to end it. Share it in an [`Arc`]. Dropping it ends the tree: a group is killed
/// before the drop returns and the crate's own thread reaps the leader; a guard is told to kill, and does.
/// Neither needs a runtime.
#[derive(Debug)]
pub struct ProcessTree {
    hold: Hold,
}

/// What we have of a tree.
#[derive(Debug)]
enum Hold {
    Group(Arc<Grouped>),
    #[cfg(target_os = "linux")]
    Guard(Arc<Guarded>),
}

/// What is known of a tree so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Status {
    pub(crate) leader: Option<LeaderExit>,
    pub(crate) end: Option<TreeEnd>,
}

impl ProcessTree {
    pub(crate) fn of_group(grouped: Arc<Grouped>) -> ProcessTree {
        ProcessTree {
            hold: Hold::Group(grouped),
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn of_guard(guarded: Arc<Guarded>) -> ProcessTree {
        ProcessTree {
            hold: Hold::Guard(guarded),
        }
    }

    /// The process id of the leader, which is the id of its group. That of its guard, if the leader killed it before
    /// the guard could tell.
    pub fn pid(&self) -> u32 {
        let leader = match &self.hold {
            Hold::Group(grouped) => grouped.group.leader(),
            #[cfg(target_os = "linux")]
            Hold::Guard(guarded) => guarded.leader(),
        };
        leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the leader has exited. Others of its tree may live on.
    ///
    /// # Cancel safety
    ///
    /// Safe: waiting changes nothing, and any number of callers get the same answer.
    pub async fn leader_exit(&self) -> LeaderExit {
        self.when(|status| status.leader).await
    }

    /// How the leader exited, if it has.
    pub fn leader_exited(&self) -> Option<LeaderExit> {
        self.status().borrow().leader
    }

    /// Who lives in the tree now, the leader not counted.
    ///
    /// Reads `/proc`, which takes well below a millisecond on most machines. Empty once the tree was seen
    /// empty, and always where the system does not name members (elsewhere than on Linux).
    pub fn members(&self) -> Vec<Member> {
        match &self.hold {
            Hold::Group(grouped) => grouped.members(),
            #[cfg(target_os = "linux")]
            Hold::Guard(guarded) => guarded.members(),
        }
    }

    /// Ends the tree: TERM and CONT to its members, and KILL after `grace`, until it is empty, whatever its
    /// leader did. A group got its TERM when this returns; a guard got the order.
    ///
    /// Another call never sends TERM again; it only brings the KILL forward. Without effect once the tree
    /// was seen empty.
    pub fn terminate(&self, grace: Duration) {
        let kill_at = Instant::now().checked_add(grace);
        match &self.hold {
            Hold::Group(grouped) => grouped.group.terminate(kill_at),
            #[cfg(target_os = "linux")]
            Hold::Guard(guarded) => guarded.terminate(kill_at),
        }
        keeper::wake();
    }

    /// Waits until the tree was seen empty, or until survivors of a KILL are named.
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
        let mut status = self.status().subscribe();
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

    fn is_over(&self) -> bool {
        let status = self.status().borrow();
        status.end.as_ref().is_some_and(|end| end.survivors.is_empty())
    }

    fn status(&self) -> &watch::Sender<Status> {
        match &self.hold {
            Hold::Group(grouped) => &grouped.status,
            #[cfg(target_os = "linux")]
            Hold::Guard(guarded) => &guarded.status,
        }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        match &self.hold {
            Hold::Group(grouped) => grouped.group.kill(),
            #[cfg(target_os = "linux")]
            Hold::Guard(guarded) => guarded.terminate(Some(Instant::now())),
        }
        // Most trees are over by then, and most programs at rest: nobody has to look again.
        if !self.is_over() {
            keeper::wake();
        }
    }
}
