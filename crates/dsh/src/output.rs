//! What the commands say on stdout.

use std::fmt::Display;
use std::io::{Write, stdout};

/// Prints a line and sends it off.
///
/// # Errors
///
/// When nobody reads it, or the disk it goes to is full.
pub(crate) fn say(line: impl Display) -> std::io::Result<()> {
    let mut stdout = stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
