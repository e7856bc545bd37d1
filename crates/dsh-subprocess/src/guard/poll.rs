//! What supervisor and guard wait for.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};

use crate::wait::timespec;

/// The signals that this process gets, as a descriptor. They must be blocked.
pub(super) struct Children(SignalFd);

/// Whether somebody has sent a signal that tells of no child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signalled {
    No,
    /// To go on, which the program and the supervisor do where something takes long.
    ToGoOn,
    Yes,
}

impl Children {
    pub(super) fn new() -> nix::Result<Children> {
        SignalFd::with_flags(&SigSet::all(), SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map(Children)
    }

    /// Forgets what was told so far. To be called before children are waited for, so that none is slept over.
    pub(super) fn clear(&self) -> Signalled {
        let mut signalled = Signalled::No;
        while let Ok(Some(signal)) = self.0.read_signal() {
            signalled = signalled.max(match signal.ssi_signo.cast_signed() {
                libc::SIGCHLD | libc::SIGUSR1 => Signalled::No,
                // From the kernel, because something came over the socket. Nobody else can say so.
                libc::SIGCONT if signal.ssi_code > 0 => Signalled::No,
                libc::SIGCONT => Signalled::ToGoOn,
                _ => Signalled::Yes,
            });
        }
        signalled
    }

    /// Sleeps until a child or one of `others` has something, or until a time.
    pub(super) fn sleep(&self, others: &[Option<BorrowedFd<'_>>], until: Option<Instant>) {
        let mut descriptors = vec![PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        let others = others.iter().flatten();
        descriptors.extend(others.map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN)));
        let timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now())));
        // A refusal (no memory) makes this a busy loop, which is better than a guard that sleeps on.
        let _ = poll(&mut descriptors, timeout.as_ref());
    }
}
