//! Any other Unix: no exit descriptors, no members by name, one probe of the whole group.
//!
//! Weaker than Linux. A zombie answers the probe on some systems, so the leader is reaped as soon as it
//! exits; its members keep the number taken while one of them lives, but between two probes the group can
//! end and, if the number comes round at once, another one can stand in its place.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::Pid;

use super::Look;
use crate::facts::Member;

/// The leader is reaped at once.
pub(crate) const LEADER_HOLDS_GROUP: bool = false;

/// Exits are polled for.
pub(crate) fn exit_descriptor(_pid: Pid) -> Option<OwnedFd> {
    None
}

/// Only a refusal "no such process" shows that a group is empty.
pub(crate) fn look(leader: Pid) -> Look {
    let complete = rustix::process::test_kill_process_group(leader) == Err(Errno::SRCH);
    Look {
        living: Vec::new(),
        complete,
    }
}

/// Names are not known here.
pub(crate) fn describe(pid: Pid) -> Member {
    Member {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        command: String::new(),
    }
}
