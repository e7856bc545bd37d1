//! What is refused before anything starts.

use std::io;
use std::path::Path;

use dsh_bash::{BashSpec, StartError};
use dsh_subprocess::Launcher;
use tokio::runtime::{Handle, RuntimeFlavor};

/// The longest command without a guard: the kernel takes 128 KiB for one argument of a process, with the NUL that ends it.
pub const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

pub(crate) fn check(spec: &BashSpec, launcher: &Launcher) -> Result<(), StartError> {
    let bytes = spec.command.len();
    if bytes > MAX_COMMAND_BYTES && !launcher.is_guarded() {
        return Err(StartError::TooLong {
            bytes,
            limit: MAX_COMMAND_BYTES,
        });
    }
    enterable(&spec.workdir).map_err(|error| StartError::Workdir {
        path: spec.workdir.clone(),
        error: describe(&error),
    })
}

/// Looking up `.` below a path needs a directory there, and the right to enter it.
///
/// A file system that does not answer holds up whoever looks. On a runtime with several threads that is this call
/// alone: everything else that waits for this thread is handed to another one.
///
/// # Panics
///
/// In a `LocalSet` of such a runtime, which cannot be handed over.
fn enterable(workdir: &Path) -> io::Result<()> {
    let look = || std::fs::metadata(workdir.join(".")).map(drop);
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(look),
        Ok(_) | Err(_) => look(),
    }
}

/// `ENOENT: no such file or directory`: the name that programs look for, and words.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "ENOENT: no such directory".to_owned(),
        io::ErrorKind::NotADirectory => "ENOTDIR: not a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "EACCES: permission denied".to_owned(),
        _ => error.to_string(),
    }
}
