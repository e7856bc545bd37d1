//! Homes that were left behind while their supervisors were not gone.
//!
//! A supervisor whose program is gone ends everything and goes, and the home is free. One that a command keeps from running
//! keeps the home locked with all that lives in it. So a program also locks a file of its home that its supervisor does
//! not have: whoever gets that lock knows that the program is gone.

use std::fs;
use std::time::{Duration, Instant};

use rustix::event::PollFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::files::has;
use super::home::Home;
use crate::keeper::{Progress, Watched};
use crate::members::has_exited;

/// More than a supervisor, or those that stand by for it, need to end everything.
const PATIENCE: Duration = Duration::from_secs(5);
/// When what resists is left for another program.
const BOUND: Duration = Duration::from_secs(20);
/// How long until it is looked at again.
const PAUSE: Duration = Duration::from_millis(100);

/// A home that has no program any more, with the lock that this had: nobody else looks after it meanwhile. It is ended when
/// its supervisor does not do that.
pub(super) struct Left {
    pub(super) home: Home,
    pub(super) since: Instant,
}

impl Watched for Left {
    fn step(&mut self, now: Instant) -> Progress {
        let elapsed = now.saturating_duration_since(self.since);
        if !has(&self.home, c"cgroup.procs") {
            // Its supervisor has removed it.
            return Progress::Gone;
        }
        if elapsed >= PATIENCE {
            let name = self.home.name();
            // Whoever stops them goes first.
            let _ = self.home.kill();
            end_holders(name);
            match self.home.remove() {
                Ok(()) => return Progress::Gone,
                Err(error) if elapsed >= BOUND => {
                    tracing::warn!(name, %error, "cannot remove cgroups that were left over");
                    return Progress::Gone;
                }
                Err(_) => {}
            }
        }
        Progress::Waiting(Some(now + PAUSE))
    }

    fn poll_descriptors<'a>(&'a self, _descriptors: &mut Vec<PollFd<'a>>) {}
}

/// Kills whoever has the lock on a home of this name: its supervisor. The guards of that go on then, and see that the
/// program is gone.
fn end_holders(name: &str) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    for pid in pids.filter(|pid| holds(*pid, name)) {
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        // Its number may have become another one's before there was a descriptor, but not since.
        if holds(pid, name) && !has_exited(&process) {
            let _ = pidfd_send_signal(&process, Signal::KILL);
        }
    }
}

/// Whether a process has the very open file over which a directory of this name is locked. Who merely has that directory
/// open has no lock.
fn holds(pid: Pid, name: &str) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let mut of_home = descriptors.filter(|entry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.file_name().is_some_and(|last| last == name))
    });
    of_home.any(|entry| {
        let info = format!("/proc/{pid}/fdinfo/{}", entry.file_name().to_string_lossy());
        fs::read_to_string(info).is_ok_and(|info| {
            info.lines()
                .any(|line| line.starts_with("lock:") && line.contains(" FLOCK "))
        })
    })
}
