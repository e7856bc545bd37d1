//! Process trees: spawn, signal, escalate, and say what was seen to end.
//!
//! A [`ProcessTree`] is a process, its process group, and the answer to the question that a bare child
//! handle leaves open: *is everything that it started gone?* It knows nothing of shells, tasks or output.
//!
//! # Contract
//!
//! - **Start.** [`spawn`] gives the process a group of its own, default signal dispositions, an empty
//!   mask, descriptors 0 to 2 and exactly the environment it is told. A failure says whether the program,
//!   the directory or the system's limits are at fault. The system call is `posix_spawn`: its cost does not
//!   grow with the memory of this program.
//! - **Exit.** [`ProcessTree::leader_exit`] is how the process itself ended. It is not the end of the tree.
//! - **End.** [`ProcessTree::ended`] is when its group was *seen* empty (zombies are gone, what cannot be
//!   seen is alive), or when survivors of a KILL are named. [`TreeEnd::proof`] says which.
//! - **Termination.** [`ProcessTree::terminate`] sends TERM, then CONT; after the grace it sends KILL until
//!   the group is empty. It is the group that must be empty, not the leader that must be gone.
//! - **Ownership.** Dropping a tree kills its group, at once. Whatever comes later is done by one thread of
//!   this crate, which needs no runtime.
//! - **No stranger is signalled.** The leader stays an unreaped zombie until its group was seen empty, so
//!   the kernel gives its number to nobody else; afterwards nothing is signalled.
//!
//! # Limits
//!
//! A process that leaves the group (`setsid`, a shell with job control) is not in the tree; hence
//! [`Proof::Group`]. A program that reaps children it did not start (`waitpid(-1)`) takes exit statuses
//! away: [`LeaderExit::Lost`]. Needs Linux 5.4 and glibc 2.29 or musl 1.1.24; before glibc 2.34 (and with
//! musl) a descriptor that the program opened without close-on-exec reaches the process unless
//! [`guard_entry`] was called after it was opened. On other Unix systems members are not named and emptiness
//! is probed, not seen.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//!
//! use dsh_subprocess::{LeaderExit, ProcessSpec, Proof, spawn};
//! use tokio::io::AsyncReadExt;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let mut spec = ProcessSpec::new("sh", "/");
//! spec.args = vec!["-c".into(), "echo ready; sleep 600 & exit 3".into()];
//! spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
//! let mut started = spawn(spec).await?;
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

mod error;
mod facts;
mod feed;
mod group;
mod guard;
#[cfg(target_os = "linux")]
mod guarded;
#[cfg(target_os = "linux")]
mod guards;
mod keeper;
mod launcher;
mod lookup;
mod pace;
mod platform;
mod prepare;
mod spawn;
mod spec;
#[cfg(target_os = "linux")]
mod supervisor;
mod sys;
mod tree;

pub use error::{GuardError, SpawnError};
pub use facts::{LeaderExit, Member, Proof, Signal, TreeEnd};
pub use guard::guard_entry;
pub use launcher::{GuardConfig, Launcher, Spawned};
pub use spec::{ProcessSpec, Stdin};
pub use tree::ProcessTree;
