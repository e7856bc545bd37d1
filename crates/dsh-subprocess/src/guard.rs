//! What runs in the processes between this program and its commands: one supervisor, and a guard for each command that
//! runs. What this program has of them is in `guarded`; what both say to each other, in `wire`.
//!
//! ```text
//! this program ── supervisor            one per launcher; no threads; a subreaper in a session of its own
//!       └───────────── guard            a fork of it; a subreaper in a session of its own
//!                        └── leader     the command, in a session of its own
//! ```
//!
//! **Invariants**
//!
//! 1. Whatever a command starts stays below its guard: an orphan is re-parented to the nearest subreaper. So
//!    *no child left to wait for* (`ECHILD`) is the proof that the tree is empty.
//! 2. Nobody but the leader's parent knows the leader, and nobody but this program knows the guard: there is
//!    one socket per guard, whose end is seen by either side. The end of this program ends the guard's tree.
//! 3. A guard that is gone leaves its orphans to the supervisor, which has no children but guards and such
//!    orphans, tells them apart by how it hears of their end, and ends all orphans.
//! 4. Neither of the two waits for anybody but in its own poll, and a guard until its leader runs; both have every
//!    signal blocked and read them from a descriptor, and neither has an environment or arguments that tell anything.
//! 5. A guard serves one command at a time, and another one only if nothing was done to it (see `serve`).
//! 6. When this program is gone, each guard that waits stands by until all others have done what they have to (see
//!    `deputy`).

#[cfg(target_os = "linux")]
mod deputy;
#[cfg(target_os = "linux")]
mod inherited;
#[cfg(target_os = "linux")]
mod poll;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod supervisor;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::sys;

/// The name, and the only argument, of a program that is started as a supervisor.
pub(crate) const SUPERVISOR: &std::ffi::CStr = c"dsh-guard-supervisor";

static OFFERED: AtomicBool = AtomicBool::new(false);

/// Offers this program as the guard of its own commands, and puts it into a known state. To be called first in
/// a plain `fn main`, before any other thread and any runtime exists.
///
/// A [`Launcher`](crate::Launcher) that is told to guard commands with this very program starts it again, once,
/// under a name that only this call understands. There, this call is the supervisor and does not return.
/// Everywhere else it returns at once, having done this:
///
/// - Signals that were inherited as ignored get their default disposition (a program started by `nohup`
///   or by a shell's `&` would otherwise ignore SIGHUP, SIGINT or SIGQUIT, and one that inherits an ignored
///   SIGCHLD could never learn how a process ended). SIGPIPE stays ignored, as Rust programs expect.
/// - The signal mask becomes empty.
/// - Descriptors from 3 on are marked close-on-exec, so that no program started by whatever means inherits
///   one by accident.
///
/// Processes started by a launcher get default dispositions, an empty mask and only descriptors 0 to 2 without
/// it, too.
///
/// ```no_run
/// // The first line of a plain `fn main`; threads, runtimes and the program come after it.
/// dsh_subprocess::guard_entry();
/// ```
pub fn guard_entry() {
    #[cfg(target_os = "linux")]
    if let Some(main) = as_supervisor() {
        supervisor::run(main)
    }
    sys::reset_ignored_signals();
    // The only refusals concern arguments, and there are none.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    sys::mark_descriptors_cloexec();
    OFFERED.store(true, Ordering::Relaxed);
}

/// Whether this program called [`guard_entry`], so that starting it again gives a supervisor.
pub(crate) fn is_offered() -> bool {
    OFFERED.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
fn as_supervisor() -> Option<std::os::fd::OwnedFd> {
    use std::os::unix::ffi::OsStrExt;
    let mut arguments = std::env::args_os();
    let word = arguments.next()?;
    let named = word.as_bytes() == SUPERVISOR.to_bytes() && arguments.next().is_none();
    named.then(sys::fork::inherited_socket).flatten()
}
