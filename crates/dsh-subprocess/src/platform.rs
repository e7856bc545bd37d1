//! How a system shows who is in a process group and when a process exits.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

use rustix::process::Pid;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::linux::{LEADER_HOLDS_GROUP, describe, exit_descriptor, look};
#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Status, status};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use self::other::{LEADER_HOLDS_GROUP, describe, exit_descriptor, look};

/// Whether `pid` is in the group of `leader` now.
///
/// By `nix`: the answer is 0 for a kernel thread, which `rustix` does not expect.
pub(crate) fn is_member(pid: Pid, leader: Pid) -> bool {
    let raw = |pid: Pid| nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get());
    nix::unistd::getpgid(Some(raw(pid))) == Ok(raw(leader))
}

/// One look at a process group.
pub(crate) struct Look {
    /// The living members that were seen, the leader included.
    pub(crate) living: Vec<Pid>,
    /// Whether the look could have seen all of them.
    pub(crate) complete: bool,
}

impl Look {
    /// Whether the group is empty. What could not be seen counts as alive.
    pub(crate) fn is_empty(&self) -> bool {
        self.complete && self.living.is_empty()
    }
}
