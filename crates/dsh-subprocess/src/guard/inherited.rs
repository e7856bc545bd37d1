//! What a command has from its guard without being given it.

use rustix::process::{Resource, Rlimit, getpriority_process, getrlimit};

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

/// The limits and the priority of this process. A command can change those of its guard (`prlimit`, `renice`), and the
/// next one would have them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inherited {
    limits: [Rlimit; RESOURCES.len()],
    priority: Option<i32>,
}

impl Inherited {
    pub(super) fn now() -> Self {
        Self {
            limits: RESOURCES.map(getrlimit),
            priority: getpriority_process(None).ok(),
        }
    }
}
