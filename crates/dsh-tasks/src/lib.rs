//! The background task registry: ids, owners, claims, waits, kills, notices and cleanup.
//!
//! A producer (a shell, a subagent, anything) hands over work under way: a future that resolves when the work is really
//! over, a hook that asks for its end, and maybe a source of output. The registry gives it an id and an owner, and from
//! then on answers for it: who may read, wait for and kill it, what is told of its end and to whom, and that nothing of
//! it is left when its owner or the registry ends. It knows no producer and renders for any front door.
//!
//! # Taking only this crate
//!
//! A harness that has its own executor needs a runtime, a [`Scope`](dsh_scope::Scope) to live on, and a control
//! surface: whatever lets somebody read and stop tasks. Here the surface is the program itself, and the executor a
//! thread that counts:
//!
//! ```
//! use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
//! use dsh_output::{OutputConfig, OutputLog, Rendering, Stream};
//! use dsh_scope::Scope;
//! use dsh_tasks::{Deps, Outcome, Serves, StartSpec, TaskRegistry, TasksConfig, Work};
//! use tokio_util::sync::CancellationToken;
//!
//! /// The executor of this harness: it has no idea of tasks.
//! fn count(log: OutputLog, stop: Arc<AtomicBool>) -> tokio::sync::oneshot::Receiver<u32> {
//!     let (done, counted) = tokio::sync::oneshot::channel();
//!     std::thread::spawn(move || {
//!         let mut n = 0;
//!         while n < 3 && !stop.load(Ordering::Relaxed) {
//!             n += 1;
//!             log.append(Stream::Stdout, format!("{n}\n").as_bytes());
//!         }
//!         log.close();
//!         let _ = done.send(n);
//!     });
//!     counted
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let root = Scope::root("my harness");
//! let tasks = TaskRegistry::install(&root, Deps::default(), TasksConfig::default())?;
//! tasks.attach_surface(&root, "my program", Serves::Everyone)?;
//!
//! let id = tasks.start(StartSpec::new("count", "count to three", || {
//!     let log = OutputLog::new(OutputConfig::default());
//!     let stop = Arc::new(AtomicBool::new(false));
//!     let counted = count(log.clone(), stop.clone());
//!     let done = async move {
//!         match counted.await {
//!             Ok(3) => Outcome::completed().detail("counted to 3"),
//!             Ok(n) => Outcome::killed().detail(format!("counted to {n}")),
//!             Err(_) => Outcome::failed().detail("the counter vanished"),
//!         }
//!     };
//!     let cancel = move |_: &_| Ok(stop.store(true, Ordering::Relaxed));
//!     Ok(Work::new(done, cancel).output(Arc::new(log.reader(Rendering::Sections))))
//! }))?;
//! assert_eq!(id.to_string(), "count-1");
//!
//! let waited = tasks.wait(&id, None, 10_000.0, &CancellationToken::new()).await?;
//! let read = tasks.read(&id, None, 64_000)?;
//! assert_eq!(read.text, "1\n2\n3\n");
//! assert_eq!(read.snapshot.status_line(), "[status: completed, counted to 3]");
//! // Only now does the model have it.
//! read.claim.deliver();
//! waited.claim.deliver();
//!
//! root.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! With the tools of `dsh-tool-tasks` the surface, the tools, the notices and the prompt section come ready-made.
//!
//! # What holds
//!
//! - **A task ends once**, with the first end it is given, and only when its producer says that the work is over (or,
//!   in a disposal, when the time for that is up; then it says so).
//! - **An end is told once.** Reads, waits and kills of the registry return a [`Claim`]: the duty to say whether the
//!   model got the result. Delivered, the end is spent. Dropped, however that happens, it is announced to the
//!   [done listeners](TaskRegistry::on_done), which tell the owner. It is never neither and never both.
//! - **Output is consumed when it is delivered.** Until then it is leased; a reader that comes meanwhile goes on behind
//!   it; what was not delivered is read again first. [`observe`](TaskRegistry::observe) consumes nothing.
//! - **A task belongs to an exact agent.** Its session may use it; it ends with that very instance, whatever
//!   successors that instance's id has. Unowned tasks are everybody's and end with the registry.
//! - **Who delegates looks on.** The sessions above an owner may list, read, await and kill its tasks ([`Access`]), and take
//!   nothing from it by that: they consume no output, claim no end, and the owner is told who killed its task.
//! - **A start is admitted before it runs.** Everything that can be refused is refused before the producer runs, a
//!   place in the owner's limit is held meanwhile, and nothing can fail after it.
//! - **A disposal ends.** It asks every task to end, waits for a bounded time, and names what it could not end.
//! - **Foreign code runs under no lock and its panics end nothing** but what they belong to.
//!
//! `docs/lifecycle.md`, `docs/concurrency.md` and `docs/producer-contract.md` say how, and which test proves what.

mod id;
mod outcome;
mod snapshot;
mod vocabulary;
mod work;

mod config;
mod error;

mod service;

#[doc(hidden)]
pub mod core;
mod render;

pub use config::{Access, MAX_LIMIT, TasksConfig};
pub use error::{AccessError, BoxError, InstallError, KillError, ReadError, StartError, WaitError};
pub use id::{Kind, TaskId};
pub use outcome::{CancelRequest, Cause, Outcome, OutcomeStatus, Survivor};
pub use service::{
    Caller, Claim, Deps, EndedTask, KillOutcome, Killed, ListenerHandle, Observation, Serves, StartClaim,
    SurfaceHandle, TaskDone, TaskRead, TaskRegistry, Waited,
};
pub use snapshot::{TaskSnapshot, TaskStatus};
pub use vocabulary::{RunningTask, Vocabulary};
pub use work::{BoxFuture, StartSpec, Work};

/// The guide for producers, whose code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/producer-contract.md")]
struct ProducerContract;
