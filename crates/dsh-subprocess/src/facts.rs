//! What is told about a tree: how its leader ended, who is in it, what its end proves.

use std::fmt;

use crate::limits::LimitReached;

/// How the leader of a tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaderExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// Which one.
        signal: Signal,
        /// Whether the kernel wrote a core image.
        core_dumped: bool,
    },
    /// Somebody else in this program took the exit status (a `waitpid(-1)`), so how it ended is not known.
    Lost,
    /// The guard that would have seen it was killed before.
    GuardLost,
}

#[cfg(target_os = "linux")]
impl LeaderExit {
    /// From the status that a wait gives.
    pub(crate) fn from_status(status: i32) -> LeaderExit {
        if libc::WIFEXITED(status) {
            LeaderExit::Code(libc::WEXITSTATUS(status))
        } else {
            LeaderExit::Signal {
                signal: Signal::new(libc::WTERMSIG(status)),
                core_dumped: libc::WCOREDUMP(status),
            }
        }
    }
}

/// `exit code: 3`, `signal: SIGTERM`, `exit status lost`, `guard lost`.
impl fmt::Display for LeaderExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaderExit::Code(code) => write!(f, "exit code: {code}"),
            LeaderExit::Signal {
                signal,
                core_dumped: false,
            } => write!(f, "signal: {signal}"),
            LeaderExit::Signal {
                signal,
                core_dumped: true,
            } => write!(f, "signal: {signal} (core dumped)"),
            LeaderExit::Lost => f.write_str("exit status lost"),
            LeaderExit::GuardLost => f.write_str("guard lost"),
        }
    }
}

/// A signal by its number on this system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signal(i32);

impl Signal {
    pub(crate) fn new(number: i32) -> Signal {
        Signal(number)
    }

    /// The number.
    pub fn number(self) -> i32 {
        self.0
    }
}

/// `SIGTERM`; `SIGRTMIN+3` for a real-time signal; `signal 99` for a number without a name.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(named) = nix::sys::signal::Signal::try_from(self.0) {
            return f.write_str(named.as_str());
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let first = libc::SIGRTMIN();
            if self.0 == first {
                return f.write_str("SIGRTMIN");
            }
            if self.0 > first && self.0 <= libc::SIGRTMAX() {
                return write!(f, "SIGRTMIN+{}", self.0 - first);
            }
        }
        write!(f, "signal {}", self.0)
    }
}

/// A living process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its process id.
    pub pid: u32,
    /// Its command for people: one line, at most 200 characters.
    pub command: String,
}

/// How a tree ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEnd {
    /// How the leader ended; `None` if the leader itself is still there.
    pub leader: Option<LeaderExit>,
    /// Who could not be ended within the bound, as far as it can be seen; a guard names 64 at most. Empty when the end
    /// is proven.
    pub survivors: Vec<Member>,
    /// What the end proves.
    pub proof: Proof,
    /// The limits that the tree ran into, as far as its guard could tell.
    pub limits_reached: Vec<LimitReached>,
}

/// What was seen of a tree's end, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// The tree was not seen empty.
    NotProven,
    /// The leader's process group was seen empty. A process that left the group (`setsid`) is not covered.
    Group,
    /// Guard and supervisor were both lost; the cgroup of the tree was killed from here and seen empty, wherever else
    /// members went. A process that left the cgroup, which takes the right to write to another one, is not covered.
    Cgroup,
    /// The guard had no child left, wherever members went: nobody is left. It also ends the tree when this program
    /// is killed.
    Guard,
    /// The guard was lost; the supervisor ended what it left behind and had no such child left: nobody is left.
    Supervisor,
}
