//! A tree under a guard, as this program sees it.
//!
//! The guard is reached in two ways: by its socket, over which it is told and tells, and by a descriptor of its
//! process, for when it does not answer. Neither can reach anybody else.
//!
//! One lock, held over the sending of an order only; nothing else is locked under it.
//!
//! **Invariant**: a guard that serves another command is out of reach of the trees that it served before. The thread
//! that hears the end cuts the way to it under the lock, and it may be used again only if it was told nothing until then.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::sync::watch;

use crate::facts::Member;
use crate::guard::wire::{Order, send};
use crate::platform;
use crate::supervisor::{Ready, Supervisor};
use crate::tree::Status;

/// What the handle and the thread that watches the tree have in common.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) kill_bound: Duration,
    leader: Pid,
    way: Mutex<Way>,
}

/// The way to the guard.
#[derive(Debug)]
struct Way {
    /// `None` when the tree is over.
    guard: Option<Arc<Ready>>,
    asked: Option<Asked>,
}

/// That the guard was told to end its tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) since: Instant,
    pub(crate) kill_at: Option<Instant>,
}

impl Guarded {
    pub(crate) fn new(
        guard: Arc<Ready>,
        supervisor: Arc<Supervisor>,
        leader: Pid,
        kill_bound: Duration,
    ) -> Guarded {
        Guarded {
            supervisor,
            status: watch::channel(Status::default()).0,
            kill_bound,
            leader,
            way: Mutex::new(Way {
                guard: Some(guard),
                asked: None,
            }),
        }
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    pub(crate) fn asked(&self) -> Option<Asked> {
        self.lock().asked
    }

    /// Cuts the way to the guard: the tree is over. Says whether it was told to end it.
    pub(crate) fn part(&self) -> Option<Asked> {
        let mut way = self.lock();
        way.guard = None;
        way.asked
    }

    /// Tells the guard to end its tree, or to do so sooner. `None` is a grace without end.
    pub(crate) fn terminate(&self, kill_at: Option<Instant>) {
        let mut way = self.lock();
        let Way {
            guard: Some(guard),
            asked,
        } = &mut *way
        else {
            return;
        };
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
        let _ = send(&guard.socket, &Order::Kill { grace }.encode(), &[]);
    }

    pub(crate) fn members(&self) -> Vec<Member> {
        let Some(guard) = self.lock().guard.clone() else {
            return Vec::new();
        };
        let mut members = Vec::new();
        guard.walk(&mut |member| {
            if member.pid != self.leader {
                members.push(platform::describe(member.pid));
            }
        });
        // The thread that hears of the end may have given the guard away during the walk; who was seen then may be of
        // another tree. While the way is open it has not.
        if self.lock().guard.is_some() {
            members
        } else {
            Vec::new()
        }
    }

    fn lock(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
