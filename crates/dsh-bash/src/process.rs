//! A running command: its state, its ends, and how to end it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use dsh_output::OutputLog;

/// One started command and everything it started, as far as the executor can follow it.
///
/// The futures may be awaited by any number of callers, before or after the fact; each resolves with the same answer
/// for everybody. A process goes on when its handle is dropped: it belongs to its executor, and ends by itself, by
/// [`terminate`](Self::terminate), or with the executor.
#[async_trait]
pub trait BashProcess: Send + Sync + 'static {
    /// Both streams in order of arrival. It is closed when the process has ended.
    fn output(&self) -> &OutputLog;

    /// What is known right now.
    fn state(&self) -> ProcessState;

    /// Asks for the end of the whole tree; returns at once. Only the first reason is kept, and asking again never
    /// restarts the escalation.
    fn terminate(&self, reason: EndReason);

    /// Waits until the shell has exited and its output was drained: to the end of the pipes, or for a bounded time
    /// when something else still holds them.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    async fn shell_ended(&self) -> ShellEnd;

    /// Waits for quiescence: the tree was seen empty, or what survived is named.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    async fn ended(&self) -> End;
}

/// What is known about a process at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessState {
    /// Started, not yet a process.
    Starting,
    /// The shell runs.
    Running,
    /// The shell has exited; `members` of its tree may live on.
    ShellExited {
        /// How the shell ended.
        exit: ShellExit,
        /// Who lives on right now.
        members: Vec<Member>,
    },
    /// Nothing of it is left, or the survivors are named.
    Ended(End),
}

/// How the shell ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's name, as in `SIGTERM`.
        name: String,
        /// Whether the kernel wrote a core dump.
        core_dumped: bool,
    },
    /// It never ran.
    Failed {
        /// Why, as in `spawn failed: …`.
        reason: String,
    },
    /// It ran, but its exit was not seen. The end of the process follows at once, and says what was seen of its tree.
    Unseen {
        /// Why.
        reason: String,
    },
}

/// One live process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its process id.
    pub pid: u32,
    /// Its name or command line, for display.
    pub command: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.command)
    }
}

/// Whether the output pipes reached their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pipe {
    /// Every byte was read.
    Closed,
    /// A live member of the tree holds them; its output still arrives.
    HeldByMember,
    /// A process outside the tree holds them; they are not waited for any longer.
    HeldOutside,
}

/// The shell's end: where a foreground command returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEnd {
    /// How the shell ended.
    pub exit: ShellExit,
    /// Who of its tree lives on.
    pub left: Vec<Member>,
    /// The limits that the tree ran into, as in [`End::limits_reached`]. Empty while somebody of it lives on: its end
    /// tells them.
    pub limits_reached: Vec<String>,
    /// Whether the output is complete.
    pub pipe: Pipe,
}

/// The end of a process and its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// How the shell ended.
    pub exit: ShellExit,
    /// Who asked for the end first, if anybody did before it came.
    pub asked: Option<Asked>,
    /// Who could not be ended. Empty for a tree that was seen empty.
    pub survivors: Vec<Member>,
    /// The limits that it ran into, in words, as in `memory limit of 1048576 bytes reached`.
    pub limits_reached: Vec<String>,
    /// Whether the output is complete.
    pub pipe: Pipe,
}

/// A request to end a process, and what it met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Why the end was asked for.
    pub reason: EndReason,
    /// What was alive then.
    pub found: Found,
}

/// What a request to end a process met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The shell still ran.
    ShellRunning,
    /// The shell had exited by itself.
    ShellExited,
}

/// Why somebody ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Somebody asked for it.
    Asked,
    /// Its time was up.
    TimedOut {
        /// The time it had.
        after: Duration,
    },
    /// The call it belonged to was cancelled.
    Cancelled,
    /// Its executor was shut down.
    Disposed,
}
