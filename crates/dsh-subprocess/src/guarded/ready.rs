//! A guard that waits for its order, or has got it.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::child::Child;
use crate::ending::Doomed;
use crate::keeper;
use crate::members::{Seen, has_exited, walk_below};
use crate::wire::{Order, send};

/// The way to a guard.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) guard: Pid,
    pub(crate) socket: OwnedFd,
    pub(crate) process: OwnedFd,
}

impl Ready {
    /// Lets it go on if it was stopped.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.process, signal);
    }

    pub(crate) fn has_exited(&self) -> bool {
        has_exited(&self.process)
    }

    /// Calls `visit` for everybody below it, as long as it lives.
    pub(crate) fn walk(&self, visit: &mut dyn FnMut(Seen)) {
        walk_below(self.guard, &self.process, visit);
    }
}

/// Whom a guard that does not answer should have ended. It is stopped, so that it reaps nobody meanwhile unless its
/// supervisor lets it go on. When it is gone nobody is seen, and its orphans are the supervisor's.
impl Doomed for Ready {
    fn kill(&self) {
        self.signal(Signal::STOP);
        self.walk(&mut |member| member.signal(Signal::KILL));
    }

    fn left(&self) -> Vec<Pid> {
        let mut left = Vec::new();
        self.walk(&mut |member| left.push(member.pid));
        left
    }
}

impl Drop for Ready {
    /// One that waits goes: it would take the mere end of its socket for the end of this program.
    ///
    /// A guard that lost its supervisor is a child of this program where that is the first process of a pid namespace (of a
    /// container), or a subreaper. Nobody else would reap it.
    fn drop(&mut self) {
        let _ = send(&self.socket, &Order::Go.encode(), &[]);
        if let (Some(orphan), Ok(keeper)) = (Child::adopted(&self.process), keeper::get()) {
            keeper.watch(Box::new(orphan));
        }
    }
}
