//! The supervisor makes guards of itself, and a guard starts its leader in a cgroup: forks of a process with one thread,
//! and what their two sides need.
//!
//! Linux only. The forks must not be called where a second thread exists: the copy would have the locks of that
//! thread and not the thread.

#![expect(
    unsafe_code,
    reason = "a fork and the descriptors a new process is born with have no safe wrapper"
)]

use std::ffi::{c_char, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use rustix::process::{Pid, WaitOptions, waitpid};

use super::{Launch, empty_set, pointers};

/// The child is born in a cgroup. The constant of `libc` is 0: it does not fit its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The third version of the kernel's `struct clone_args` (Linux 5.7); older kernels take it when what they do not know
/// is 0.
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
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

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

/// Why there is no process in a cgroup.
pub(crate) enum Stillborn {
    /// The kernel makes none, or none there.
    NoProcess(io::Error),
    /// The program cannot be executed, or the directory not be entered.
    NoProgram(io::Error),
}

/// Starts a process in a cgroup. As [`spawn`](super::spawn), which cannot do that, for a launch as session leader by a
/// process with one thread whose dispositions are the default ones and whose descriptors all close themselves.
///
/// This process goes on when the program runs, so a failure leaves no process behind.
pub(crate) fn spawn_into(cgroup: BorrowedFd<'_>, launch: &Launch<'_>) -> Result<Pid, Stillborn> {
    let args = CloneArgs {
        flags: CLONE_INTO_CGROUP,
        cgroup: u64::from(cgroup.as_raw_fd().cast_unsigned()),
        ..CloneArgs::default()
    };
    spawn_as(args, launch, bear)
}

/// A way to make a child that becomes a program, and to return when it has, or has failed to.
type Bear = fn(CloneArgs, &mut Birth<'_>) -> io::Result<Pid>;

#[cfg(target_arch = "x86_64")]
use bear_in_shared_memory as bear;

#[cfg(not(target_arch = "x86_64"))]
use bear_by_fork as bear;

/// What a child needs on its way to its program.
struct Birth<'a> {
    launch: &'a Launch<'a>,
    argv: &'a [*mut c_char],
    env: &'a [*mut c_char],
    /// Why it did not get there.
    errno: c_int,
}

fn spawn_as(args: CloneArgs, launch: &Launch<'_>, bear: Bear) -> Result<Pid, Stillborn> {
    let mut birth = Birth {
        launch,
        argv: &pointers(launch.argv),
        env: &pointers(launch.env),
        errno: 0,
    };
    let args = CloneArgs {
        flags: args.flags | u64::from(libc::CLONE_VFORK.cast_unsigned()),
        exit_signal: u64::from(libc::SIGCHLD.cast_unsigned()),
        ..args
    };
    let child = bear(args, &mut birth).map_err(Stillborn::NoProcess)?;
    if birth.errno == 0 {
        return Ok(child);
    }
    while matches!(
        waitpid(Some(child), WaitOptions::empty()),
        Err(rustix::io::Errno::INTR)
    ) {}
    Err(Stillborn::NoProgram(io::Error::from_raw_os_error(birth.errno)))
}

/// As `vfork` does it: the child has the memory of this process and a stack of its own, and this process stands still
/// until the child is a program or gone. A fork costs a tenth of what it takes to start a shell.
#[cfg(target_arch = "x86_64")]
fn bear_in_shared_memory(args: CloneArgs, birth: &mut Birth<'_>) -> io::Result<Pid> {
    /// Far more than a few system calls need, in units that keep it aligned.
    const STACK: usize = 64 * 1024 / size_of::<u128>();

    extern "C" fn child(birth: *mut Birth<'_>) -> ! {
        // SAFETY: the parent gave its only reference and stands still meanwhile.
        let birth = unsafe { &mut *birth };
        // SAFETY: whoever made the birth made the arrays as they have to be.
        birth.errno = unsafe { become_program(birth) };
        exit(127)
    }

    let mut stack = Vec::<u128>::new();
    stack
        .try_reserve_exact(STACK)
        .map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let args = CloneArgs {
        flags: args.flags | u64::from(libc::CLONE_VM.cast_unsigned()),
        stack: stack.as_mut_ptr().expose_provenance() as u64,
        stack_size: (STACK * size_of::<u128>()) as u64,
        ..args
    };
    let result: c_long;
    // SAFETY: the parent comes out of the block once, with the result; what the call changes is declared. The child comes
    // out of the call on its own stack, which is aligned and empty, and never out of the block: it calls a function that
    // does not return. It touches `birth` and the stack alone, which outlive it as a sharer of this memory, for the
    // parent stands still until the child executes a program or exits (CLONE_VFORK). It runs with the parent's
    // thread-local `errno`, which the parent does not expect to keep.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const args,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") &raw mut *birth,
            in("r13") child as extern "C" fn(*mut Birth<'_>) -> !,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    match i32::try_from(result) {
        Ok(errno @ ..0) => Err(io::Error::from_raw_os_error(-errno)),
        Ok(pid) => Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH)),
        Err(_) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}

/// Where nobody wrote down how a child gets another stack.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn bear_by_fork(args: CloneArgs, birth: &mut Birth<'_>) -> io::Result<Pid> {
    use std::io::Read;
    let (refusal, tell) = io::pipe()?;
    // SAFETY: without CLONE_VM and with no stack this is a fork: the child goes on with a copy of everything. This
    // process has one thread, so no lock is held by anybody else; in the child there are only system calls. `args` has
    // the size that is told and outlives the call.
    let child: c_long = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    if child == 0 {
        // SAFETY: whoever made the birth made the arrays as they have to be.
        let errno = unsafe { become_program(birth) };
        let _ = rustix::io::write(&tell, &errno.to_ne_bytes());
        exit(127);
    }
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(tell);
    let mut errno = [0; size_of::<c_int>()];
    // It closed the pipe without a word if it runs the program.
    if std::fs::File::from(OwnedFd::from(refusal))
        .read_exact(&mut errno)
        .is_ok()
    {
        birth.errno = c_int::from_ne_bytes(errno);
    }
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    child.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// In a child that nothing else runs in: takes what the launch gives, and executes the program. Returns the error.
///
/// # Safety
///
/// Arguments and environment must be null-terminated arrays of pointers to NUL-terminated strings.
unsafe fn become_program(birth: &Birth<'_>) -> c_int {
    let launch = birth.launch;
    let nothing_blocked = empty_set();
    // SAFETY: the descriptors are open and none of the copied ones is 0, 1 or 2, so no copy overwrites a later one; the
    // set is initialised; the strings and arrays are as `execve` wants them, by the caller's promise.
    unsafe {
        libc::setsid();
        let entered = libc::fchdir(launch.directory.as_raw_fd()) == 0;
        let copied = (0..)
            .zip(launch.stdio)
            .all(|(target, source)| entered && libc::dup2(source.as_raw_fd(), target) == target);
        let unblock = &raw const nothing_blocked;
        if copied && libc::sigprocmask(libc::SIG_SETMASK, unblock, std::ptr::null_mut()) == 0 {
            let (argv, env) = (birth.argv.as_ptr(), birth.env.as_ptr());
            libc::execve(launch.program.as_ptr(), argv.cast(), env.cast());
        }
        *libc::__errno_location()
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

#[cfg(test)]
mod tests;
