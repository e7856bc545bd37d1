//! Finding a program the way a shell would, on the child's PATH and not on ours.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Where a program is looked for when the environment has no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The path to execute. A name with a slash is one already; a bare name is the first executable file of
/// that name on PATH. Relative entries, the empty one included, mean the child's working directory.
pub(crate) fn find(program: &OsStr, env: &[(OsString, OsString)], cwd: &Path) -> io::Result<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    let default = OsStr::new(DEFAULT_PATH);
    let path = env
        .iter()
        .rfind(|(name, _)| name == "PATH")
        .map_or(default, |(_, value)| value.as_os_str());
    // Execution happens in that directory, so the result must not depend on ours.
    let cwd = std::path::absolute(cwd)?;
    let mut refusal = libc::ENOENT;
    for directory in std::env::split_paths(path) {
        let candidate = cwd.join(directory).join(program);
        match std::fs::metadata(&candidate) {
            Ok(metadata) if metadata.is_file() => match rustix::fs::access(&candidate, Access::EXEC_OK) {
                Ok(()) => return Ok(candidate),
                Err(_) => refusal = libc::EACCES,
            },
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => refusal = libc::EACCES,
            Err(_) => {}
        }
    }
    Err(io::Error::from_raw_os_error(refusal))
}
