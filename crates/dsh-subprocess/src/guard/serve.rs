//! The guard of a command.
//!
//! It starts the leader, reaps it and whatever is re-parented here, ends the tree when told so or when nobody
//! is there to tell, and reports what it sees.
//!
//! A guard without children is as good as a new one, and better: what it needs of its memory is its own by then. So it
//! waits for another order, unless something was done to it: it was told to kill, or sent a signal by whomever. What may be
//! done to it while it waits is looked at when the order comes.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, wait};

use super::deputy::Deputy;
use super::inherited::Birthright;
use super::poll::{Children, Signalled};
use super::start::{Running, Told, await_order, start};
use crate::cgroup::{Cgroup, Population, hits};
use crate::ending::{Below, Killing, Leader, term};
use crate::pace::Pace;
use crate::sys;
use crate::wire::{After, Limited, Order, Received, Report, Stage, await_something, receive};

/// How long a tree has between TERM and KILL when the harness is gone.
const ORPHANED_GRACE: Duration = Duration::from_millis(500);
/// A cgroup in which somebody lives who is nobody's child here is asked again at this pace.
const ASK: Pace = Pace::new(Duration::from_micros(100), Duration::from_millis(20));

/// Serves commands, one after the other. Returns when there will be no other one, and no tree is left.
pub(super) fn serve(socket: OwnedFd, birthright: &Birthright, deputy: Deputy) -> Result<(), Errno> {
    // A command can stop this process and end the supervisor, which would let it go on when the harness is gone.
    let _ = sys::go_on_with(socket.as_fd());
    let children = Children::new().map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
    let mut harness = Harness(Some(socket));
    let mut after = After::Waits;
    while let (Some(socket), After::Waits) = (&harness.0, after) {
        await_something(socket);
        // Somebody may have come by while this process was at rest. Whoever gave the order gives it to another guard then.
        let stage = if children.clear() == Signalled::Yes {
            Some(Stage::Signalled)
        } else {
            (!birthright.is_whole()).then_some(Stage::Changed)
        };
        if let Some(stage) = stage {
            harness.tell(&Report::NotStarted { stage, errno: 0 });
            return Ok(());
        }
        let order = match await_order(socket) {
            Ok(Told::Run(order)) => order,
            Ok(Told::Go) => return Ok(()),
            Ok(Told::End) => {
                deputy.stand_by(&children);
                return Ok(());
            }
            Err(errno) => {
                let (stage, errno) = (Stage::Order, errno.raw_os_error());
                harness.tell(&Report::NotStarted { stage, errno });
                return Ok(());
            }
        };
        let (kill_bound, limited) = (order.run.kill_bound, order.run.limited);
        match start(order, &mut harness) {
            Ok(Running {
                leader,
                script,
                cgroup,
            }) => {
                harness.tell(&Report::Started {
                    leader: leader.as_raw_nonzero().get().cast_unsigned(),
                });
                after = Guard {
                    harness: &mut harness,
                    children: &children,
                    leader,
                    state: Leader::Unreaped,
                    status: None,
                    stop: Stop::No,
                    kill_bound,
                    signalled: Signalled::No,
                    cgroup,
                    limited,
                    ask: ASK,
                }
                .run();
                drop(script);
                // Whoever waits has heard of the end by now.
                match after {
                    After::Waits => sys::give_memory_back(),
                    After::Goes => {}
                }
            }
            Err((stage, errno)) => {
                harness.tell(&Report::NotStarted { stage, errno });
                after = After::Goes;
            }
        }
    }
    Ok(())
}

struct Guard<'a> {
    harness: &'a mut Harness,
    children: &'a Children,
    leader: Pid,
    state: Leader,
    /// How the leader exited, until that is told.
    status: Option<i32>,
    stop: Stop,
    kill_bound: Duration,
    signalled: Signalled,
    cgroup: Option<Cgroup>,
    limited: Limited,
    ask: Pace,
}

/// How far the termination of the tree has come.
enum Stop {
    No,
    Grace { kill_at: Option<Instant> },
    Kill(Killing),
}

/// The way to the harness, while it is there.
pub(super) struct Harness(Option<OwnedFd>);

impl Harness {
    pub(super) fn tell(&mut self, report: &Report) {
        if let Some(socket) = &self.0 {
            report.send(socket);
        }
    }
}

impl Guard<'_> {
    fn run(mut self) -> After {
        loop {
            self.clear_signals();
            self.read_orders();
            let left = self.left();
            if left == Left::Nobody {
                self.tell_hits();
                let status = self.status;
                let guard = self.after();
                self.harness.tell(&Report::Empty { status, guard });
                return guard;
            }
            if let Some(status) = self.status.take() {
                self.harness.tell(&Report::Exit { status });
            }
            let ask_at = (left == Left::NoChild).then(|| Instant::now() + self.ask.next());
            let next = [self.kill_when_due(), ask_at].into_iter().flatten().min();
            let harness = self.harness.0.as_ref().map(AsFd::as_fd);
            self.children.sleep(&[harness], next);
        }
    }

    fn clear_signals(&mut self) {
        self.signalled = self.signalled.max(self.children.clear());
    }

    /// What becomes of this guard, of whose tree nobody is left: it serves again if that tree has left no trace in it.
    ///
    /// The last member may have sent a signal after signals were looked at and exited before children were. What it has
    /// sent is here by now, since it is gone.
    fn after(&mut self) -> After {
        self.clear_signals();
        match (&self.stop, self.signalled) {
            (Stop::No, Signalled::No) => After::Waits,
            (
                Stop::No | Stop::Grace { .. } | Stop::Kill(_),
                Signalled::No | Signalled::ToGoOn | Signalled::Yes,
            ) => After::Goes,
        }
    }

    fn read_orders(&mut self) {
        while let Some(socket) = &self.harness.0 {
            match receive(socket) {
                Ok(Received::Message(message, _)) => {
                    if let Some(Order::Kill { grace }) = Order::decode(&message) {
                        self.terminate(grace);
                    }
                }
                Ok(Received::Nothing) | Err(Errno::MFILE) => return,
                Ok(Received::End) | Err(_) => {
                    self.harness.0 = None;
                    self.terminate(Some(ORPHANED_GRACE));
                }
            }
        }
    }

    fn terminate(&mut self, grace: Option<Duration>) {
        let kill_at = grace.and_then(|grace| Instant::now().checked_add(grace));
        match &mut self.stop {
            Stop::No => {
                term(self.leader, self.state);
                self.stop = Stop::Grace { kill_at };
            }
            Stop::Grace { kill_at: planned } => {
                *planned = [*planned, kill_at].into_iter().flatten().min();
            }
            Stop::Kill(_) => {}
        }
    }

    /// No child means nobody, unless somebody else was put into the cgroup of this tree.
    fn left(&mut self) -> Left {
        match (self.reap(), &self.cgroup) {
            (Left::Nobody, Some(cgroup)) if cgroup.population() == Population::Somebody => Left::NoChild,
            (left, _) => left,
        }
    }

    fn tell_hits(&mut self) {
        if let (Limited::Yes, Some(cgroup)) = (self.limited, &self.cgroup) {
            let hits = hits(cgroup);
            self.harness.tell(&Report::Reached(hits));
        }
    }

    fn reap(&mut self) -> Left {
        // Also those that some program created to end with another signal.
        let every_kind = WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned());
        loop {
            match wait(WaitOptions::NOHANG | every_kind) {
                // Its number may be another member's once it was reaped.
                Ok(Some((pid, status))) if pid == self.leader && self.state == Leader::Unreaped => {
                    self.state = Leader::Reaped;
                    self.status = Some(status.as_raw());
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return Left::Nobody,
                Ok(None) | Err(_) => return Left::Somebody,
            }
        }
    }

    /// When the next KILL is due, if one is.
    fn kill_when_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if let Stop::Grace { kill_at } = self.stop {
            match kill_at {
                Some(at) if at <= now => self.stop = Stop::Kill(Killing::from(now)),
                later => return later,
            }
        }
        let Stop::Kill(killing) = &mut self.stop else {
            return None;
        };
        let doomed = Below {
            cgroup: self.cgroup.as_ref(),
            spared: &|_| false,
        };
        if let Some(survivors) = killing.step(now, self.kill_bound, &doomed) {
            self.harness.tell(&Report::Survivors(survivors));
        }
        Some(killing.again_at())
    }
}

/// Who is left below this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
    /// Somebody who is no child of this process.
    NoChild,
}

#[cfg(test)]
mod tests;
