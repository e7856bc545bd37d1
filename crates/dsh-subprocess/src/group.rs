//! A tree that is a process group: who may signal it, and until when.
//!
//! **Invariants**
//!
//! 1. The group is signalled only with its lock held and only while it is *pinned*: its leader is an
//!    unreaped child of ours, so the kernel gives its number to nobody else and every signal hits ours. That it is
//!    unreaped is asked by a descriptor of it where there are such: its number may be another child's, once some other
//!    part of the program has reaped it.
//! 2. The pin ends once, under the lock, after the group was seen empty (or the leader was lost). Nothing
//!    is signalled afterwards, however late a caller comes.
//! 3. TERM is sent at most once; KILL is never followed by anything but KILL.
//!
//! One lock, held over the signalling system call only; nothing else is locked under it.

mod start;
mod watch;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};

pub(crate) use self::start::launch;
use crate::facts::Member;
use crate::platform;
use crate::tree::Status;

/// What the handle of a group and the thread that watches it have in common.
#[derive(Debug)]
pub(crate) struct Grouped {
    pub(crate) group: Group,
    pub(crate) status: tokio::sync::watch::Sender<Status>,
    kill_bound: Duration,
}

/// The group that a process of ours leads.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    core: Mutex<Core>,
}

/// How far the termination of a group has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Nobody asked for it.
    No,
    /// TERM was sent; KILL follows at this time, if at any.
    Grace { kill_at: Option<Instant> },
    /// KILL was sent, and is sent until the group is empty.
    Kill,
}

#[derive(Debug)]
struct Core {
    pinned: bool,
    /// The leader itself, until it is let go.
    process: Option<Arc<OwnedFd>>,
    stop: Stop,
}

impl Grouped {
    fn new(group: Group, kill_bound: Duration) -> Grouped {
        Grouped {
            group,
            status: tokio::sync::watch::channel(Status::default()).0,
            kill_bound,
        }
    }

    /// Who lives in the group now, the leader not counted.
    pub(crate) fn members(&self) -> Vec<Member> {
        let leader = self.group.leader();
        if !self.group.is_pinned() {
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
        if self.group.is_pinned() {
            members
        } else {
            Vec::new()
        }
    }
}

impl Group {
    /// The group of `leader`, an unreaped child of this process that leads its own group.
    pub(crate) fn new(leader: Pid) -> Group {
        Group {
            leader,
            core: Mutex::new(Core {
                pinned: true,
                process: platform::exit_descriptor(leader).map(Arc::new),
                stop: Stop::No,
            }),
        }
    }

    /// A group that no signal reaches, as if nothing could end it.
    #[cfg(test)]
    pub(crate) fn immune(leader: Pid, stop: Stop) -> Group {
        Group {
            leader,
            core: Mutex::new(Core {
                pinned: false,
                process: platform::exit_descriptor(leader).map(Arc::new),
                stop,
            }),
        }
    }

    pub(crate) fn leader(&self) -> Pid {
        self.leader
    }

    /// What becomes readable when the leader exits. `None` when the system has no such descriptor to give.
    pub(crate) fn leader_process(&self) -> Option<Arc<OwnedFd>> {
        self.lock().process.clone()
    }

    pub(crate) fn stop(&self) -> Stop {
        self.lock().stop
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.lock().pinned
    }

    /// Asks the group to end, and sets or advances the time of the KILL. `None` is never.
    pub(crate) fn terminate(&self, kill_at: Option<Instant>) {
        let mut core = self.lock();
        if !core.pinned {
            return;
        }
        match core.stop {
            Stop::No => {
                core.stop = Stop::Grace { kill_at };
                self.signal(&core, Signal::TERM);
                // A stopped process acts on TERM only when it goes on.
                self.signal(&core, Signal::CONT);
            }
            Stop::Grace { kill_at: planned } => {
                let sooner = [planned, kill_at].into_iter().flatten().min();
                core.stop = Stop::Grace { kill_at: sooner };
            }
            Stop::Kill => {}
        }
    }

    /// Kills what is in the group now. Called again until it is empty.
    pub(crate) fn kill(&self) {
        let mut core = self.lock();
        if core.pinned {
            core.stop = Stop::Kill;
            self.signal(&core, Signal::KILL);
        }
    }

    /// Reaps the leader and gives the number back: the group was seen empty, or is not ours any more.
    pub(crate) fn release(&self) {
        let mut core = self.lock();
        core.pinned = false;
        self.reap_in(&core);
        core.process = None;
    }

    /// Reaps the leader. Elsewhere than on Linux this happens as soon as it exits.
    pub(crate) fn reap(&self) {
        self.reap_in(&self.lock());
    }

    /// How the leader exited, if it has. It stays unreaped.
    ///
    /// # Errors
    ///
    /// `ECHILD` when somebody else reaped it.
    pub(crate) fn leader_status(&self) -> Result<Option<WaitIdStatus>, Errno> {
        self.wait(&self.lock(), WaitIdOptions::NOWAIT)
    }

    /// Whether the leader is still an unreaped child of ours. A foreign `waitpid(-1)` could have taken it.
    pub(crate) fn is_held(&self) -> bool {
        self.is_held_in(&self.lock())
    }

    fn reap_in(&self, core: &Core) {
        // An error means that somebody else reaped it: there is nothing left to do.
        let _ = self.wait(core, WaitIdOptions::empty());
    }

    fn is_held_in(&self, core: &Core) -> bool {
        !platform::LEADER_HOLDS_GROUP || self.wait(core, WaitIdOptions::NOWAIT).err() != Some(Errno::CHILD)
    }

    fn wait(&self, core: &Core, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
        let leader = match &core.process {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Some(process) => WaitId::PidFd(process.as_fd()),
            _ => WaitId::Pid(self.leader),
        };
        rustix::process::waitid(leader, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | options)
    }

    fn signal(&self, core: &Core, signal: Signal) {
        let leader = self.leader;
        // By `nix`: our own group is 0 when its leader is outside of our pid namespace.
        let own_group = nix::unistd::getpgrp().as_raw();
        let ours = leader != Pid::INIT && leader.as_raw_nonzero().get() != own_group;
        if !core.pinned || !ours || !self.is_held_in(core) {
            return;
        }
        // A refusal is no end: the group counts as alive until it is seen empty.
        let _ = rustix::process::kill_process_group(leader, signal);
        // The leader may have moved to another group of its session; it is still ours.
        if platform::LEADER_HOLDS_GROUP && !platform::is_member(leader, leader) {
            let _ = match &core.process {
                #[cfg(any(target_os = "linux", target_os = "android"))]
                Some(process) => rustix::process::pidfd_send_signal(process, signal),
                _ => rustix::process::kill_process(leader, signal),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
