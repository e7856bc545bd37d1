//! Waiting for one descriptor.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Whether a descriptor becomes readable within this time; a pidfd does when its process exits. A refusal to tell counts
/// as yes: whoever looks then sees for itself.
pub(crate) fn is_readable(descriptor: impl AsFd, within: Duration) -> bool {
    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut descriptors, Some(&timespec(within))) != Ok(0)
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
