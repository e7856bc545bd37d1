//! The supervisor makes guards of itself: a fork of a process with one thread, and what its two sides need.
//!
//! Linux only. The fork must not be called where a second thread exists: the copy would have the locks of that
//! thread and not the thread.

#![expect(
    unsafe_code,
    reason = "a fork and the descriptors a new process is born with have no safe wrapper"
)]

use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::process::Pid;

/// Which side of a fork this is.
pub(crate) enum Forked {
    Child,
    /// With a descriptor of the child.
    Parent {
        child: Pid,
        process: OwnedFd,
    },
}

/// Forks this process. The kernel tells the parent of the child's end by SIGUSR1 and not by SIGCHLD, so
/// that it counts as a *clone* child: a plain wait means all others, and `__WCLONE` means these.
pub(crate) fn fork_clone_child() -> io::Result<Forked> {
    /// The first version of the kernel's `struct clone_args`.
    #[repr(C)]
    #[derive(Default)]
    struct CloneArgs {
        flags: u64,
        pidfd: u64,
        child_tid: u64,
        parent_tid: u64,
        exit_signal: u64,
        stack: u64,
        stack_size: u64,
        tls: u64,
    }
    let mut process: c_int = -1;
    let args = CloneArgs {
        flags: u64::from(libc::CLONE_PIDFD.cast_unsigned()),
        pidfd: (&raw mut process).expose_provenance() as u64,
        exit_signal: u64::from(libc::SIGUSR1.cast_unsigned()),
        ..CloneArgs::default()
    };
    // SAFETY: without CLONE_VM and with no stack this is a fork: the child goes on with a copy of everything.
    // This process has one thread, so no lock is held by anybody else. `args` has the size that is told and
    // outlives the call, and `process` is a place for the descriptor.
    let child: c_long = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match child {
        0 => Ok(Forked::Child),
        1.. => {
            let child = i32::try_from(child).ok().and_then(Pid::from_raw);
            // SAFETY: the call succeeded, so it wrote a new descriptor that nobody else owns.
            let process = unsafe { OwnedFd::from_raw_fd(process) };
            child
                .map(|child| Forked::Parent { child, process })
                .ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends this process here, without anything that its program would do at its end.
pub(crate) fn exit(code: c_int) -> ! {
    // SAFETY: the call ends the process and touches nothing in it.
    unsafe { libc::_exit(code) }
}

/// Closes every descriptor from 3 on but `kept`, which becomes number 3. What owned the others in this
/// process must not be used, nor dropped, again.
pub(crate) fn keep_only(kept: OwnedFd) -> io::Result<OwnedFd> {
    const NUMBER: RawFd = 3;
    let kept = if kept.as_raw_fd() == NUMBER {
        kept
    } else {
        // SAFETY: makes 3 a copy of an open descriptor, closing what it was; nobody uses that again.
        if unsafe { libc::dup3(kept.as_raw_fd(), NUMBER, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // The original is closed below, by its number; 3 is ours.
        let _ = kept.into_raw_fd();
        // SAFETY: 3 was just opened, and nobody else owns it.
        unsafe { OwnedFd::from_raw_fd(NUMBER) }
    };
    close_from(NUMBER + 1);
    Ok(kept)
}

/// The socket that this process was born with as descriptor 3, if it was.
pub(crate) fn inherited_socket() -> Option<OwnedFd> {
    const NUMBER: RawFd = 3;
    // SAFETY: the call only asks for flags; a number that is not open is refused.
    if unsafe { libc::fcntl(NUMBER, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return None;
    }
    // SAFETY: it is open, and this is the first thing that the program does: nobody owns it yet.
    let socket = unsafe { OwnedFd::from_raw_fd(NUMBER) };
    match rustix::net::sockopt::socket_type(&socket) {
        Ok(rustix::net::SocketType::SEQPACKET) => Some(socket),
        _ => {
            // It belongs to the program.
            let _ = socket.into_raw_fd();
            None
        }
    }
}

/// One call for all descriptors (Linux 5.9), or one for each number that is listed.
fn close_from(first: RawFd) {
    // SAFETY: closes descriptors whose owners are not used again, as the callers promise.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) } == 0;
    if done {
        return;
    }
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = listed
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers.into_iter().filter(|number| *number >= first) {
        // SAFETY: as above; a number that is not open any more is refused.
        unsafe { libc::close(number) };
    }
}
