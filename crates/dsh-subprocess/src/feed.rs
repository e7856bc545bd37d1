//! The bytes that a process reads on standard input.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

/// The writing end of a process's standard input and what is still to be written.
pub(crate) struct Feed {
    pipe: OwnedFd,
    data: Vec<u8>,
    written: usize,
}

/// Whether a [`Feed`] has more to write.
pub(crate) enum Fed {
    All,
    Some,
}

impl Feed {
    /// Takes a pipe that does not block.
    pub(crate) fn new(pipe: OwnedFd, data: Vec<u8>) -> Feed {
        Feed {
            pipe,
            data,
            written: 0,
        }
    }

    /// Writes what fits now, once: a fast reader of much data must not keep the thread from other trees.
    /// A reader that is gone takes everything: its loss is not our error.
    pub(crate) fn write(&mut self) -> Fed {
        let rest = self.data.get(self.written..).unwrap_or_default();
        if rest.is_empty() {
            return Fed::All;
        }
        match rustix::io::write(&self.pipe, rest) {
            Ok(count) => self.written += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return Fed::All,
        }
        if self.written < self.data.len() {
            Fed::Some
        } else {
            Fed::All
        }
    }
}

impl AsFd for Feed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
