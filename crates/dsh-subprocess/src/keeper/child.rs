//! A child of this program that is only waited for.

use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::{Progress, Watched};

pub(super) struct Child {
    pid: Pid,
    process: OwnedFd,
}

impl Child {
    pub(super) fn new(pid: Pid, process: OwnedFd) -> Child {
        Child { pid, process }
    }
}

impl Watched for Child {
    fn step(&mut self, _now: Instant) -> Progress {
        match waitid(
            WaitId::Pid(self.pid),
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
