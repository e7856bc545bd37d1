//! Why a session file was not read or written.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::SessionId;

/// Why a session file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A new session would overwrite something.
    #[error("session file {} exists and is not empty: resume it, or name another file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Another harness, or another session of this one, has it.
    #[error("session file {} is in use: end the session that writes it, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A directory, a pipe, a device.
    #[error("session file {} is no regular file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// The working directory cannot be written down.
    #[error("working directory {} cannot be recorded: it must be absolute and valid UTF-8", cwd.display())]
    Cwd {
        /// The directory.
        cwd: PathBuf,
    },
    /// The file is something else than a log.
    #[error("{} is no session file: its first line is no session header ({why})", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// What is wrong with the line.
        why: String,
    },
    /// The file is of another version of the format.
    #[error("session file {} has version {found}: only version {} is known", path.display(), crate::SessionHeader::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// The file is that of another session.
    #[error("session file {} is of session {found}, not of {expected}", path.display())]
    OtherSession {
        /// The file.
        path: PathBuf,
        /// Whose it should be.
        expected: SessionId,
        /// Whose it is.
        found: SessionId,
    },
    /// Events are missing or damaged that no crash of ours damages.
    #[error("session file {} is damaged at line {line}: {why}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else changed the file while it was in use.
    #[error("session file {} was {how} by somebody else while it was in use", path.display())]
    Meddled {
        /// The file.
        path: PathBuf,
        /// What was done to it.
        how: &'static str,
    },
    /// The system refuses.
    #[error("cannot {doing} session file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The runtime is shutting down.
    #[error("session file {} was not written: the runtime is shutting down", path.display())]
    ShuttingDown {
        /// The file.
        path: PathBuf,
    },
}

impl StoreError {
    /// Makes an error of what the system says while this is done to the file.
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, doing, source }
    }
}
