//! What a command has from its guard without being given it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::process::{Resource, Rlimit, getrlimit};
use rustix::thread::{CpuSet, current_timer_slack, sched_getaffinity};

use crate::sys::{Scheduling, io_priority, scheduling, session_keyring};

const RESOURCES: [Resource; 16] = [
    Resource::As,
    Resource::Core,
    Resource::Cpu,
    Resource::Data,
    Resource::Fsize,
    Resource::Locks,
    Resource::Memlock,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Nofile,
    Resource::Nproc,
    Resource::Rss,
    Resource::Rtprio,
    Resource::Rttime,
    Resource::Sigpending,
    Resource::Stack,
];

/// The limits, the priorities and the like of a process. Whoever may signal a process may change those, too (`prlimit`,
/// `renice`, `taskset`, `ionice`, files of it in `/proc`, a cgroup to which it may write), and what is started by it would
/// have them. What only a process itself can change (its umask, its directory) is not among them, nor is what a debugger
/// does to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inherited {
    limits: [Rlimit; RESOURCES.len()],
    scheduling: Scheduling,
    processors: Option<CpuSet>,
    io_priority: i64,
    timer_slack: Option<u64>,
    /// A child can give one to its parent.
    session_keyring: i64,
    oom_score: Vec<u8>,
    core_filter: Vec<u8>,
    /// Of every hierarchy.
    cgroups: Vec<u8>,
}

/// Files of this process in `/proc`, open since it was born.
#[derive(Debug)]
struct Files {
    oom_score: Option<File>,
    core_filter: Option<File>,
    cgroups: Option<File>,
}

/// What a process was born with, and what tells whether it still has that.
#[derive(Debug)]
pub(super) struct Birthright {
    inherited: Inherited,
    files: Files,
}

impl Birthright {
    /// That of this process, which nobody has changed yet.
    pub(super) fn of_this_process() -> Birthright {
        let files = Files::open();
        let inherited = Inherited::now(&files);
        Birthright { inherited, files }
    }

    /// The same for a fork of this process, said by that: it must have what this one was born with.
    pub(super) fn of_fork(&self) -> Birthright {
        Birthright {
            inherited: self.inherited.clone(),
            files: Files::open(),
        }
    }

    /// Whether this process has it still.
    pub(super) fn is_whole(&self) -> bool {
        self.inherited == Inherited::now(&self.files)
    }
}

impl Files {
    fn open() -> Files {
        let open = |name: &str| File::open(format!("/proc/self/{name}")).ok();
        Files {
            oom_score: open("oom_score_adj"),
            core_filter: open("coredump_filter"),
            cgroups: open("cgroup"),
        }
    }
}

impl Inherited {
    fn now(files: &Files) -> Inherited {
        Inherited {
            limits: RESOURCES.map(getrlimit),
            scheduling: scheduling(),
            processors: sched_getaffinity(None).ok(),
            io_priority: io_priority(),
            timer_slack: current_timer_slack().ok(),
            session_keyring: session_keyring(),
            oom_score: text(files.oom_score.as_ref()),
            core_filter: text(files.core_filter.as_ref()),
            cgroups: text(files.cgroups.as_ref()),
        }
    }
}

/// All that a file says now; nothing where there is none, and then it is not compared.
fn text(file: Option<&File>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(file) = file {
        let mut piece = [0; 512];
        while let Ok(read) = file.read_at(&mut piece, text.len() as u64) {
            text.extend_from_slice(&piece[..read]);
            // The kernel gives as much as there is.
            if read < piece.len() {
                break;
            }
        }
    }
    text
}
