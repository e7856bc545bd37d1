use crate::sys;

/// Puts the program into a known state. To be called first in a plain `fn main`, before any other thread
/// and any runtime exists.
///
/// - Signals that were inherited as ignored get their default disposition (a program started by `nohup`
///   or by a shell's `&` would otherwise ignore SIGHUP, SIGINT or SIGQUIT, and one that inherits an ignored
///   SIGCHLD could never learn how a process ended). SIGPIPE stays ignored, as Rust programs expect.
/// - The signal mask becomes empty.
/// - Descriptors from 3 on are marked close-on-exec, so that no program started by whatever means inherits
///   one by accident.
///
/// Processes started by [`spawn`](crate::spawn()) get default dispositions, an empty mask and only
/// descriptors 0 to 2 without it, too.
///
/// ```no_run
/// // The first line of a plain `fn main`; threads, runtimes and the program come after it.
/// dsh_subprocess::guard_entry();
/// ```
pub fn guard_entry() {
    sys::reset_ignored_signals();
    // The only refusals concern arguments, and there are none.
    let _ = nix::sys::signal::SigSet::empty().thread_set_mask();
    sys::mark_descriptors_cloexec();
}
