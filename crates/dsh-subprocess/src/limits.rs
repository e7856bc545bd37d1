//! What a command may use at most, and what is told of it.

use std::fmt;
use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

/// What all processes of a tree may use together. Nothing is limited by default.
///
/// A limit is held by the kernel, in a cgroup of version 2 that has its controller, and refused where there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory, page cache included; nothing is swapped out then. The kernel kills a process of the tree when
    /// it cannot make room.
    pub memory_bytes: Option<NonZeroU64>,
    /// How many processes and threads there may be. A fork above it fails with `EAGAIN`.
    pub pids: Option<NonZeroU32>,
}

impl Limits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Limits::default()
    }
}

/// A limit that a tree ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// A process of it was killed because there was no more memory for it.
    Memory {
        /// The limit.
        bytes: u64,
    },
    /// A fork failed.
    Pids {
        /// The limit.
        count: u32,
    },
}

/// `memory limit of 1048576 bytes reached`, `limit of 100 processes reached`.
impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitReached::Memory { bytes } => write!(f, "memory limit of {bytes} bytes reached"),
            LimitReached::Pids { count } => write!(f, "limit of {count} processes reached"),
        }
    }
}

impl LimitError {
    pub(crate) fn no_guard() -> LimitError {
        LimitError::NoCgroup {
            missing: "commands run in process groups, without a guard".to_owned(),
        }
    }
}

/// Why limits cannot be held. Nothing runs without the limits it was to have.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// There is no cgroup to hold them.
    #[error(
        "limits need a cgroup (version 2, Linux 5.14) in which this program may make directories, and a guard: {missing}"
    )]
    NoCgroup {
        /// What is missing.
        missing: String,
    },
    /// The cgroup does not have the controller.
    #[error(
        "no {controller} controller in {}: it must be in cgroup.controllers there, so not taken by a hierarchy of \
         version 1 (boot with cgroup_no_v1={controller}) and delegated to this program", .directory.display()
    )]
    NoController {
        /// Which one.
        controller: &'static str,
        /// The cgroup.
        directory: PathBuf,
    },
    /// The cgroup has the controller and cannot give it to those below it.
    #[error(
        "cannot enable the {controllers} controller in {}/cgroup.subtree_control: {source}; name a delegated cgroup \
         that has no processes of its own, such as the parent of the one this program is in", .directory.display()
    )]
    NotEnabled {
        /// Which ones.
        controllers: String,
        /// The cgroup.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The limit itself was refused.
    #[error("cannot write {value} to {file} of a cgroup: {source}")]
    NotSet {
        /// Where it goes.
        file: &'static str,
        /// What goes there.
        value: String,
        /// What the system said.
        source: io::Error,
    },
}
