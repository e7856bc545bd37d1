//! Registration scopes: effects with awaited disposal, tracked spawns, contained panics.
//!
//! A [`Scope`] is a lifetime with a name. What somebody registers on it (a tool, a listener, the end of a process) is
//! an **effect**: a label and an async disposer. Closing the scope cancels its token, then runs the disposers one
//! after the other, the newest first, each awaited, each contained: a disposer that panics is logged with its label
//! and the next one runs. Background work is spawned on a scope and is awaited in the same order. Scopes nest: a child
//! is closed by its parent, in its place in that order.
//!
//! ```
//! use dsh_scope::Scope;
//! # use std::sync::{Arc, Mutex};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let order = Arc::new(Mutex::new(Vec::new()));
//! let scope = Scope::root("server");
//!
//! let seen = order.clone();
//! scope.effect("listener", move || async move { seen.lock().unwrap().push("listener gone") })?;
//!
//! let (seen, stop) = (order.clone(), scope.token().clone());
//! scope.spawn("poller", async move {
//!     stop.cancelled().await;
//!     seen.lock().unwrap().push("poller ended");
//! })?;
//!
//! scope.close().await?;
//! assert_eq!(*order.lock().unwrap(), ["poller ended", "listener gone"]);
//!
//! // A closed scope refuses, and hands back what it was given.
//! let refused = scope.effect("late", || async {}).unwrap_err();
//! assert_eq!(refused.to_string(), r#"cannot create effect on inactive scope "server""#);
//! (refused.rejected)().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - [`Scope::close`] is memoized: every caller awaits the one closing, which runs in a task of its own, so dropping
//!   the future stops nothing.
//! - [`EffectHandle::dispose`] ends one effect early. However many callers race, and whether or not the scope closes
//!   meanwhile, the disposer runs once and everybody awaits that run.
//! - Closing a scope from inside work it would have to wait for is [`CloseError::FromWithin`], not a deadlock.
//! - A scope whose last handle is dropped unclosed cancels its token and logs the labels it leaks. It cannot wait.
//! - Panics are contained at three boundaries: disposers, spawned tasks, and whatever is put through [`contain`] or
//!   [`contain_future`]. The crate refuses to compile with `panic = "abort"`, where none of this would hold.
//!
//! A runtime is needed to close, dispose and spawn; building scopes and registering effects needs none.

#[cfg(not(panic = "unwind"))]
compile_error!("dsh-scope contains panics, which needs panic = \"unwind\"");

mod scope;

mod effect;
mod entry;
mod launch;
mod lineage;
mod state;

mod contain;
mod deadline;
mod error;

pub use contain::{Contained, Panicked, contain, contain_boxed, contain_future};
pub use deadline::within;
pub use effect::{EffectHandle, TrackedTask};
pub use error::{CloseError, ScopeClosed};
pub use scope::Scope;
