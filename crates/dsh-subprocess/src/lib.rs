//! Process trees: spawn, signal, escalate, and say what was seen to end.
//!
//! A [`ProcessTree`] is a process, what it starts, and the answer to the question that a bare child
//! handle leaves open: *is everything that it started gone?* It knows nothing of tasks or output.
//!
//! # Contract
//!
//! - **Level.** A [`Launcher`] starts processes in groups, which needs nothing, or under guards, which needs one call
//!   in `main` and Linux. The level decides what the end of a tree proves: [`Proof`].
//! - **Start.** [`Launcher::spawn`] gives the process default signal dispositions, an empty mask, descriptors 0 to 2
//!   and exactly the environment it is told. A failure says whether the program, the directory or the system's limits
//!   are at fault. This program never forks: the cost of a start does not grow with its memory.
//! - **Pipes.** [`Spawned`] has the reading ends of standard output and standard error, each a stream of its own, and on
//!   request the writing end of standard input ([`StdinPipe`]). They belong to the owner; the tree does not wait for them.
//! - **Exit.** [`ProcessTree::leader_exit`] is how the process itself ended. It is not the end of the tree.
//! - **End.** [`ProcessTree::ended`] is when its group was *seen* empty (zombies are gone, what cannot be
//!   seen is alive), when its guard had nobody left to wait for, or when survivors of a KILL are named.
//! - **Termination.** [`ProcessTree::terminate`] sends TERM, then CONT; after the grace it sends KILL until
//!   the tree is empty. It is the tree that must be empty, not the leader that must be gone.
//! - **Ownership.** Dropping a tree kills it, at once. Whatever comes later is done by one thread of
//!   this crate, which needs no runtime.
//! - **No stranger is signalled.** A group's leader stays an unreaped zombie until its group was seen empty, so
//!   the kernel gives its number to nobody else; a guard signals its own children, and others by descriptors. After
//!   the end nothing is signalled.
//!
//! # Under a guard
//!
//! The guard is the leader's parent and a subreaper: whatever leaves the group, the session or its own parent
//! (`setsid`, `nohup`, a double fork, a shell with job control) is still below it. It TERMs the leader's group as one,
//! then once every member outside of it. When this program is killed, every guard sees that and ends its tree: TERM, half
//! a second, KILL. When a command kills its guard, the guard's parent, the supervisor, ends the rest of the tree and tells so
//! ([`LeaderExit::GuardLost`], [`Proof::Supervisor`]); when it stops it, the supervisor lets it go on, and when it stops both, this
//! program does, or the kernel when this program is killed. Where it keeps both from running after that, the guards that
//! wait for other commands end it. Only a command that kills the supervisor and kills its guard can escape
//! ([`Proof::NotProven`]); one that kills the supervisor and keeps its guard from running, or keeps all guards and the
//! supervisor from that, outlives this program if that is killed. The guards hold no environment and no arguments of a
//! command where others could read them.
//!
//! # In a cgroup
//!
//! Where this program may make directories in a cgroup of version 2 ([`Cgroups`]), each guarded command is born in one
//! of its own, in addition to all the above. Then this program ends also a tree whose guard and supervisor were killed
//! at once ([`Proof::Cgroup`]), a tree that forks without end goes with one write, and what outlived even this program
//! is ended by the next one that starts commands in the same place. Where it may not, nothing else changes. Only in a
//! cgroup a tree can have [`Limits`]; where they cannot be held a start is refused.
//!
//! | level | an end proves | not proven when | not covered |
//! |---|---|---|---|
//! | group | the group is empty | the leader was reaped by somebody else | who left the group |
//! | guard, supervisor | nobody is left | both were killed at once | |
//! | cgroup in addition | nobody is left | both were killed at once, and this program too | then, who moved itself to another cgroup, which takes the right to |
//!
//! # What it cannot do
//!
//! In a group, a process that leaves it is not in the tree, and a program that reaps children it did not start
//! (`waitpid(-1)`) takes exit statuses away: [`LeaderExit::Lost`]. At any level, work that is handed to another daemon
//! is not in the tree. A program that is the first process of a pid namespace (of a container), or a subreaper, is given
//! all orphans: guards that lost their supervisor are reaped then, but nobody may reap what is left of a tree that lost both,
//! since a wait for any child would take away exits that others wait for. An init as first process (`docker run --init`)
//! does that. Needs Linux 5.4 and glibc 2.29 or musl 1.1.24; before glibc 2.34 (and with
//! musl) a descriptor that the program opened without close-on-exec reaches a process in a group unless
//! [`guard_entry`] was called after it was opened. On other Unix systems there are no guards, members are not named and
//! emptiness is probed, not seen.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use dsh_subprocess::{Launcher, LeaderExit, ProcessSpec, Proof};
//! use tokio::io::AsyncReadExt;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let mut spec = ProcessSpec::new("sh", "/");
//! spec.args = vec!["-c".into(), "echo ready; sleep 600 & exit 3".into()];
//! spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
//! let mut started = Launcher::groups().spawn(spec).await?;
//!
//! assert_eq!(started.tree.leader_exit().await, LeaderExit::Code(3));
//! let mut line = [0; 6];
//! started.stdout.read_exact(&mut line).await?;
//! assert_eq!(&line, b"ready\n");
//!
//! // The shell is gone, what it started is not.
//! started.tree.terminate(Duration::from_secs(3));
//! assert_eq!(started.tree.ended().await.proof, Proof::Group);
//! # Ok(())
//! # })
//! # }
//! ```

// What to start and what is told of it.
mod error;
mod facts;
mod launcher;
mod limits;
mod spec;
mod stdin;
mod tree;

// On the way to a start.
mod feed;
mod lookup;
mod prepare;
mod starter;

// Trees that are process groups.
mod group;

// Trees under guards: what runs in the guards, and what this program has of them.
mod guard;
#[cfg(target_os = "linux")]
mod guarded;

// What both sides use.
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod members;
#[cfg(target_os = "linux")]
mod wire;

// Who watches all trees, and the system.
mod keeper;
mod pace;
mod platform;
mod sys;
mod wait;

pub use error::{GuardError, SpawnError};
pub use facts::{LeaderExit, Member, Proof, Signal, TreeEnd};
pub use guard::guard_entry;
pub use launcher::{Cgroups, GuardConfig, Launcher, Spawned};
pub use limits::{LimitError, LimitReached, Limits};
pub use spec::{ProcessSpec, Stdin};
pub use stdin::StdinPipe;
pub use tree::ProcessTree;
