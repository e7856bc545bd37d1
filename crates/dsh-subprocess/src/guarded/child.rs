//! A child of this program that is only waited for.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use crate::keeper::{Progress, Watched};

pub(super) struct Child {
    process: OwnedFd,
}

impl Child {
    pub(super) fn new(process: OwnedFd) -> Child {
        Child { process }
    }

    /// A process that others have started, if it was given to this program as an orphan.
    pub(super) fn adopted(process: &OwnedFd) -> Option<Child> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let is_ours = waitid(WaitId::PidFd(process.as_fd()), options).is_ok();
        is_ours.then(|| process.try_clone().ok().map(Child::new))?
    }
}

impl Watched for Child {
    fn step(&mut self, _now: Instant) -> Progress {
        // By its descriptor: another part of the program may have reaped it, and its number may be another child's.
        match waitid(
            WaitId::PidFd(self.process.as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        ) {
            Ok(None) | Err(Errno::INTR) => Progress::Waiting(None),
            Ok(Some(_)) | Err(_) => Progress::Gone,
        }
    }

    fn poll_descriptors<'a>(&'a self, descriptors: &mut Vec<PollFd<'a>>) {
        descriptors.push(PollFd::new(&self.process, PollFlags::IN));
    }
}
