//! The bash seam: what to run, and a handle on what runs.
//!
//! Three parties meet here and know nothing of each other: an *executor* (this machine, a container, a cluster), a
//! *caller* that wants a command run, and whoever owns the process afterwards. The seam knows commands, limits,
//! exits and output; it knows no task, no id and no owner.
//!
//! # Contract
//!
//! - A [`BashRequest`] is what somebody asked for. [`BashExecutor::resolve`] turns it into a [`BashSpec`], in which
//!   every default and every cap has been applied; nothing after that defaults again.
//! - [`BashExecutor::start`] is the only way to run something. It returns a [`BashProcess`] at once.
//!   [`BashExecutor::check`] comes before: what may take time to find out (whether the directory is there) is asked there,
//!   and [`checked`] bounds it by the caller's token and the spec's timeout.
//! - Foreground is [`run`]: `check` and `start`, plus a caller that waits until the shell has exited and its output was drained,
//!   and that ends the whole tree when its timeout fires or its token is cancelled. Background is the same process
//!   with somebody else waiting for [`ended_within`]. Nothing about the process differs, which is why what a
//!   foreground command leaves running can be handed on as it is.
//! - A process has *ended* when its tree was seen empty, or the survivors are named: never merely because the shell
//!   exited. Exit facts are what was seen: an exit code, a signal, or the reason why there is neither.
//! - Whoever ends a process says why ([`EndReason`]); the first reason is kept.
//!
//! # Example
//!
//! ```
//! use dsh_bash::{BashExecutor, BashRequest, RunError, ShellExit, run};
//! use tokio_util::sync::CancellationToken;
//!
//! /// Runs the tests of a checkout with whatever executor the program was given.
//! async fn tests_pass(bash: &dyn BashExecutor, stop: &CancellationToken) -> Result<bool, RunError> {
//!     let request = BashRequest { workdir: Some("/srv/checkout".into()), ..BashRequest::new("make test") };
//!     let result = run(bash, &bash.resolve(request)?, stop).await?;
//!     Ok(result.cut.is_none() && result.exit == ShellExit::Code(0))
//! }
//! ```

mod error;
mod executor;
mod limits;
mod process;
mod request;
mod run;

pub use error::{ResolveError, RunError, StartError};
pub use executor::BashExecutor;
pub use limits::Limits;
pub use process::{
    Asked, BashProcess, End, EndReason, Found, Member, Pipe, ProcessState, ShellEnd, ShellExit,
};
pub use request::{BashRequest, BashSpec};
pub use run::{Cut, RunResult, checked, ended_within, run};
