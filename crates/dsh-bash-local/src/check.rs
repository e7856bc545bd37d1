//! What is refused before anything starts.

use dsh_bash::{BashSpec, StartError};
use dsh_subprocess::Launcher;

/// The longest command without a guard: the kernel takes 128 KiB for one argument of a process, with the NUL that ends it.
pub const MAX_COMMAND_BYTES: usize = 128 * 1024 - 1;

pub(crate) fn length(spec: &BashSpec, launcher: &Launcher) -> Result<(), StartError> {
    let bytes = spec.command.len();
    if bytes > MAX_COMMAND_BYTES && !launcher.is_guarded() {
        return Err(StartError::TooLong {
            bytes,
            limit: MAX_COMMAND_BYTES,
        });
    }
    Ok(())
}
