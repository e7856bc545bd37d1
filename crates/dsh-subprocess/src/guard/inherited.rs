//! What a command has from its guard without being given it.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::sys::{Scheduling, io_priority, scheduling};

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
/// `renice`, `taskset`, `ionice`, `oom_score_adj`), and what is started by it would have them. What only a process itself
/// can change (its umask, its directory) is not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Inherited {
    limits: [Rlimit; RESOURCES.len()],
    scheduling: Scheduling,
    processors: Option<CpuSet>,
    io_priority: i64,
    oom_score: [u8; 8],
}

/// What a process was born with, and what tells whether it still has that.
#[derive(Debug)]
pub(super) struct Birthright {
    inherited: Inherited,
    oom_score: Option<File>,
}

impl Birthright {
    /// That of this process, which nobody has changed yet.
    pub(super) fn of_this_process() -> Birthright {
        let oom_score = own_oom_score();
        let inherited = Inherited::now(oom_score.as_ref());
        Birthright { inherited, oom_score }
    }

    /// The same for a fork of this process, said by that: it must have what this one was born with.
    pub(super) fn of_fork(&self) -> Birthright {
        Birthright {
            inherited: self.inherited.clone(),
            oom_score: own_oom_score(),
        }
    }

    /// Whether this process has it still.
    pub(super) fn is_whole(&self) -> bool {
        self.inherited == Inherited::now(self.oom_score.as_ref())
    }
}

fn own_oom_score() -> Option<File> {
    File::open("/proc/self/oom_score_adj").ok()
}

impl Inherited {
    fn now(oom_score: Option<&File>) -> Inherited {
        let mut score = [0; 8];
        if let Some(file) = oom_score {
            // Not there, it is not compared.
            let _ = rustix::io::pread(file, &mut score, 0);
        }
        Inherited {
            limits: RESOURCES.map(getrlimit),
            scheduling: scheduling(),
            processors: sched_getaffinity(None).ok(),
            io_priority: io_priority(),
            oom_score: score,
        }
    }
}
