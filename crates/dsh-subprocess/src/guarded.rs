//! A tree under a guard, as this program sees it.
//!
//! The guard is reached in two ways: by its socket, over which it is told and tells, and by a descriptor of its
//! process, for when it does not answer. Neither can reach anybody else.
//!
//! One lock, held over the sending of an order only; nothing else is locked under it.
//!
//! **Invariant**: a guard that serves another command is out of reach of the trees that it served before. The thread
//! that hears the end cuts the way to it under the lock, and it may be used again only if it was told nothing until then.

// A start: the order, and who gets it.
mod message;
mod pool;
mod ready;
mod start;

// What is heard and done after that.
mod child;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use self::pool::Pool;
use self::ready::Ready;
pub(crate) use self::start::Guards;
use crate::cgroup::Room;
use crate::facts::Member;
use crate::limits::Limits;
use crate::platform;
use crate::tree::Status;
use crate::wire::{Order, send};

/// What the handle and the thread that watches the tree have in common.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) pool: Arc<Pool>,
    pub(crate) status: tokio::sync::watch::Sender<Status>,
    pub(crate) kill_bound: Duration,
    pub(crate) limits: Limits,
    leader: Pid,
    way: Mutex<Way>,
}

/// The way to the guard.
#[derive(Debug)]
struct Way {
    /// `None` when the tree is over.
    guard: Option<Arc<Ready>>,
    room: Option<Arc<Room>>,
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
        (guard, room): (Arc<Ready>, Option<Arc<Room>>),
        pool: Arc<Pool>,
        leader: Pid,
        kill_bound: Duration,
        limits: Limits,
    ) -> Guarded {
        Guarded {
            pool,
            status: tokio::sync::watch::channel(Status::default()).0,
            kill_bound,
            limits,
            leader,
            way: Mutex::new(Way {
                guard: Some(guard),
                room,
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
        way.room = None;
        way.asked
    }

    /// Tells the guard to end its tree, or to do so sooner. `None` is a grace without end.
    pub(crate) fn terminate(&self, kill_at: Option<Instant>) {
        let mut way = self.lock();
        let Way {
            guard: Some(guard),
            asked,
            ..
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
        let (guard, room) = {
            let way = self.lock();
            let Some(guard) = way.guard.clone() else {
                return Vec::new();
            };
            (guard, way.room.clone())
        };
        let mut seen = Vec::new();
        guard.walk(&mut |member| seen.push(member.pid));
        // Also whom the walk missed, or could not find because the guard is gone.
        for pid in room.iter().flat_map(|room| room.members()) {
            if !seen.contains(&pid) {
                seen.push(pid);
            }
        }
        seen.retain(|pid| *pid != self.leader);
        let members = seen.into_iter().map(platform::describe).collect();
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
