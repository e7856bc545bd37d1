//! What can go wrong before a process runs.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use crate::limits::LimitError;

/// Why no process was started. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program cannot be executed.
    #[error("cannot run {}: {}", .program.display(), named(.source))]
    Program {
        /// The program as it was asked for.
        program: OsString,
        /// What the system said.
        source: io::Error,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter working directory {}: {}", .directory.display(), named(.source))]
    Directory {
        /// The directory as it was asked for.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no room for another process, descriptor or thread; later it may.
    #[error("cannot create {what}: {}", named(.source))]
    Resources {
        /// What could not be created.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Arguments and environment are longer than the system takes; pass long text on standard input.
    #[error("arguments and environment are too long, pass long text on standard input: {}", named(.source))]
    TooLong {
        /// What the system said.
        source: io::Error,
    },
    /// The program name is empty.
    #[error("program name must not be empty")]
    EmptyProgram,
    /// A string holds a NUL byte, which the system cannot pass on.
    #[error("{what} must not contain a NUL byte")]
    Nul {
        /// Which string.
        what: String,
    },
    /// The name of an environment variable is empty or contains `=`.
    #[error("environment variable name {name:?} must be non-empty and without `=`")]
    EnvName {
        /// The name.
        name: OsString,
    },
    /// SIGCHLD is ignored in this program, so the kernel would forget how a process ended.
    #[error("SIGCHLD is ignored in this program, so no exit could be seen: call guard_entry() first in main")]
    ExitsIgnored,
    /// The program that is to guard commands does not do so.
    #[error("cannot guard commands with {}: {}", .program.display(), named(.source))]
    Supervisor {
        /// The program.
        program: PathBuf,
        /// What the system said, or what the program did.
        source: io::Error,
    },
    /// The cgroup of commands is frozen, and could not be thawed from here.
    #[error("cannot start a process in {}, which is frozen: write 0 to cgroup.freeze there and in those above it", .cgroup.display())]
    Frozen {
        /// The cgroup.
        cgroup: PathBuf,
    },
    /// The limits cannot be held.
    #[error(transparent)]
    Limits(#[from] LimitError),
}

impl SpawnError {
    /// The system's error number, where the system refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            SpawnError::Program { source, .. }
            | SpawnError::Directory { source, .. }
            | SpawnError::Resources { source, .. }
            | SpawnError::Supervisor { source, .. }
            | SpawnError::TooLong { source } => source.raw_os_error(),
            SpawnError::EmptyProgram
            | SpawnError::Limits(_)
            | SpawnError::Frozen { .. }
            | SpawnError::Nul { .. }
            | SpawnError::EnvName { .. }
            | SpawnError::ExitsIgnored => None,
        }
    }

    pub(crate) fn directory(directory: &Path, source: impl Into<io::Error>) -> SpawnError {
        let source = source.into();
        if is_shortage(&source) {
            return SpawnError::resources("a descriptor for the working directory", source);
        }
        SpawnError::Directory {
            directory: directory.to_owned(),
            source,
        }
    }

    pub(crate) fn resources(what: &'static str, source: impl Into<io::Error>) -> SpawnError {
        SpawnError::Resources {
            what,
            source: source.into(),
        }
    }
}

/// Why commands cannot be guarded.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// This program cannot be its own guard.
    #[error(
        "this program cannot guard commands: call guard_entry() first in main, or name the helper dsh-guard"
    )]
    NotOffered,
    /// The helper is not there.
    #[error("cannot guard commands with {}: {}", .helper.display(), named(.source))]
    Helper {
        /// The helper as it was named.
        helper: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The cgroup that was named for commands cannot hold any.
    #[error("cannot make cgroups in {}: {source}; name a writable directory of a cgroup file system, version 2", .directory.display())]
    Cgroup {
        /// The directory as it was named.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There are no guards on this system.
    #[error("commands are guarded on Linux only")]
    Unsupported,
}

/// Whether the system is out of something, whatever was asked of it.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let shortages = [
        libc::EAGAIN,
        libc::ENOMEM,
        libc::EMFILE,
        libc::ENFILE,
        libc::ENOSPC,
    ];
    error
        .raw_os_error()
        .is_some_and(|errno| shortages.contains(&errno))
}

/// `ENOENT (No such file or directory)`.
fn named(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(errno) => format!("{errno:?} ({})", errno.desc()),
        None => error.to_string(),
    }
}
