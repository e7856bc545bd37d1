//! What a guard does that waits for an order when the program goes: it stands by until the supervisor sends it away.
//!
//! A command can keep its guard and the supervisor from running, by stopping them again and again or with a debugger. The
//! guards that wait are none of its business, and each of them can end what those two do not: whoever is below the
//! supervisor is a guard or to be killed. All that stand by may do so at once.

use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};

use super::poll::{Children, Signalled};
use crate::ending::{Doomed, Outcome, Outside};
use crate::members::{Seen, walk_below};
use crate::platform::status;

/// More than the supervisor and its guards need to end everything themselves.
const STAND_BY: Duration = Duration::from_secs(3);
/// How long those who are killed may resist.
const KILL_BOUND: Duration = Duration::from_secs(10);

/// Whom a guard stands in for, and for whose sake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deputy {
    pub(super) supervisor: Pid,
    /// The program that started the supervisor.
    pub(super) program: Option<Pid>,
}

impl Deputy {
    /// Returns when this guard is sent away, or everything has ended.
    pub(super) fn stand_by(self, children: &Children) {
        let until = Instant::now() + STAND_BY;
        loop {
            if children.clear() == Signalled::Yes || !self.has_supervisor() {
                return;
            }
            if Instant::now() >= until {
                break;
            }
            children.sleep(&[], Some(until));
        }
        let Ok(process) = pidfd_open(self.supervisor, PidfdFlags::empty()) else {
            return;
        };
        // The descriptor is that of this parent if it is the parent now.
        let below = status(self.supervisor).is_some_and(|found| self.program != Pid::from_raw(found.parent));
        if self.has_supervisor() && below {
            let supervisor = self.supervisor;
            Rest { supervisor, process }.end(children);
        }
    }

    fn has_supervisor(self) -> bool {
        getppid() == Some(self.supervisor)
    }
}

/// Everybody below the supervisor but guards. These are clone children of it, which no orphan is.
struct Rest {
    supervisor: Pid,
    process: std::os::fd::OwnedFd,
}

impl Rest {
    fn end(self, children: &Children) {
        let mut outside = Outside::from(Instant::now());
        loop {
            match outside.step(Instant::now(), KILL_BOUND, &self) {
                Outcome::Going {
                    again_at,
                    survivors: None,
                } => children.sleep(&[], Some(again_at)),
                // Nobody can end them.
                Outcome::Going {
                    survivors: Some(_), ..
                } => return,
                Outcome::Calm => break,
            }
            children.clear();
        }
        walk_below(self.supervisor, &self.process, &mut |guard| {
            // Those that run see for themselves that nobody is left.
            if guard.status.stands_still {
                guard.signal(Signal::KILL);
            }
        });
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    fn walk(&self, visit: &mut dyn FnMut(Seen)) {
        let supervisor = self.supervisor.as_raw_nonzero().get();
        walk_below(self.supervisor, &self.process, &mut |seen| {
            let is_guard = seen.status.parent == supervisor && seen.status.told_by == libc::SIGUSR1;
            if !is_guard {
                visit(seen);
            }
        });
    }
}

impl Doomed for Rest {
    fn kill(&self) {
        self.walk(&mut |member| member.signal(Signal::KILL));
    }

    fn left(&self) -> Vec<Pid> {
        let mut left = Vec::new();
        self.walk(&mut |member| left.push(member.pid));
        left
    }
}
