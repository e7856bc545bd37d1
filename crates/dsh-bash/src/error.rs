//! Refusals, each naming the thing and what to do about it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// The most characters of a path that an error repeats; no system opens a longer one.
const MAX_PATH_SHOWN: usize = 4096;

/// A request that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is nothing to run.
    #[error("command is blank; give the shell something to run")]
    BlankCommand,
    /// An argument of a process cannot contain NUL.
    #[error("command contains a NUL byte; use an escape such as printf '\\0' to produce one")]
    NulInCommand,
    /// A number that must be positive and finite is not.
    #[error("{executor}: {field} must be a positive finite number")]
    NotPositive {
        /// The executor that refuses.
        executor: &'static str,
        /// The field it refuses.
        field: &'static str,
    },
    /// A `DSH_*` name came on the ordinary channel.
    #[error("ordinary bash env cannot set reserved variable \"{name}\"; use dsh_env")]
    ManagedInEnv {
        /// The variable.
        name: String,
    },
    /// Another name came on the managed channel.
    #[error("managed bash env cannot set ordinary variable \"{name}\"; use env")]
    OrdinaryInDshEnv {
        /// The variable.
        name: String,
    },
    /// No environment can hold this.
    #[error(
        "variable {name:?} cannot be set: a name must be non-empty without '=', and neither name nor value may contain NUL"
    )]
    MalformedVariable {
        /// The variable.
        name: String,
    },
    /// The directory is the empty path.
    #[error("workdir is empty; leave it out or name a directory")]
    EmptyWorkdir,
    /// No directory was named and there is no default.
    #[error("no working directory: {error}; name one with workdir")]
    NoWorkdir {
        /// What the system said.
        error: String,
    },
}

/// A command that could not be started; nothing runs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartError {
    /// The directory is missing, is no directory, or may not be entered.
    #[error("working directory {} is not usable: {error}", shown(path))]
    Workdir {
        /// The directory.
        path: PathBuf,
        /// Why, beginning with the system's name for it (`ENOENT: …`).
        error: String,
    },
    /// Whoever knows the directory did not answer.
    #[error(
        "working directory {} does not answer: nothing was heard within {}ms, so nothing was started; see whether its \
         file system is still there",
        shown(path),
        after.as_millis()
    )]
    Unanswered {
        /// The directory.
        path: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// One argument of a process has a limit, and the command is one argument.
    #[error(
        "command is too long: {bytes} bytes, the limit is {limit}; write it to a script file and run that"
    )]
    TooLong {
        /// The command's length.
        bytes: usize,
        /// The longest command this executor can hand to a shell.
        limit: usize,
    },
    /// The executor is shutting down.
    #[error("{executor} is shut down; no command can be started any more")]
    Closed {
        /// The executor that refuses.
        executor: &'static str,
    },
}

/// A foreground command without a result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RunError {
    /// The request was refused.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The command was refused.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The token was cancelled before anything started.
    #[error("aborted before spawn: aborted")]
    AbortedBeforeSpawn,
    /// The token was cancelled while the directory was asked after.
    #[error("aborted before spawn: working directory {} had not answered", shown(path))]
    AbortedInCheck {
        /// The directory.
        path: PathBuf,
    },
    /// There was no shell, so there is no exit.
    #[error("{reason}")]
    Failed {
        /// Why, as in `spawn failed: …`.
        reason: String,
    },
}

fn shown(path: &Path) -> String {
    let path = path.to_string_lossy();
    path.chars().take(MAX_PATH_SHOWN).collect()
}
