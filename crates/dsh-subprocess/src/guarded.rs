//! A tree under a guard, as this program sees it.
//!
//! The guard is reached in two ways: by its socket, over which it is told and tells, and by a descriptor of its
//! process, for when it does not answer. Neither can reach anybody else.
//!
//! One lock, held over the sending of an order only; nothing else is locked under it.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::sync::watch;

use crate::facts::Member;
use crate::guard::members::{Seen, walk_below};
use crate::guard::wire::{Order, send};
use crate::platform;
use crate::supervisor::{Ready, Supervisor};
use crate::tree::Status;

/// What the handle and the thread that watches the tree have in common.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) socket: OwnedFd,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) kill_bound: Duration,
    leader: Pid,
    guard: Pid,
    process: OwnedFd,
    asked: Mutex<Option<Asked>>,
}

/// That the guard was told to end its tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) since: Instant,
    pub(crate) kill_at: Option<Instant>,
}

impl Guarded {
    pub(crate) fn new(
        ready: Ready,
        supervisor: Arc<Supervisor>,
        leader: Pid,
        kill_bound: Duration,
    ) -> Guarded {
        Guarded {
            socket: ready.socket,
            supervisor,
            status: watch::channel(Status::default()).0,
            kill_bound,
            leader,
            guard: ready.guard,
            process: ready.process,
            asked: Mutex::new(None),
        }
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// Whether the leader was heard of. If not, its guard's number stands for it.
    pub(crate) fn leader_is_known(&self) -> bool {
        self.leader != self.guard
    }

    pub(crate) fn asked(&self) -> Option<Asked> {
        *self.lock()
    }

    /// Tells the guard to end its tree, or to do so sooner. `None` is a grace without end.
    pub(crate) fn terminate(&self, kill_at: Option<Instant>) {
        let mut asked = self.lock();
        let now = Instant::now();
        let (since, kill_at) = match *asked {
            None => (now, kill_at),
            Some(Asked {
                since,
                kill_at: planned,
            }) => {
                let sooner = [planned, kill_at].into_iter().flatten().min();
                if sooner == planned {
                    return;
                }
                (since, sooner)
            }
        };
        *asked = Some(Asked { since, kill_at });
        let grace = kill_at.map(|at| at.saturating_duration_since(now));
        // A guard that is gone needs no order.
        let _ = send(&self.socket, &Order::Kill { grace }.encode(), &[]);
    }

    pub(crate) fn signal_guard(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.process, signal);
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        if self
            .status
            .borrow()
            .end
            .as_ref()
            .is_some_and(|end| end.survivors.is_empty())
        {
            return Vec::new();
        }
        let mut members = Vec::new();
        self.walk(&mut |member| {
            if member.pid != self.leader {
                members.push(platform::describe(member.pid));
            }
        });
        members
    }

    /// Calls `visit` for everybody below the guard, as long as that lives.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(Seen)) {
        walk_below(self.guard, &self.process, visit);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
