//! What providers of products have in common: a product is a program that works as a child process and is spoken to over
//! its standard streams.
//!
//! - **The process.** [`Product::start`] starts it in a verified tree of [`dsh_subprocess`]; [`Product::release`] ends that tree
//!   and returns when it was seen empty. Between the two, a provider speaks the product's protocol over [`Streams`], most of
//!   them in [lines of JSON](JsonLines).
//! - **What may be said.** A [`Failure`] is a line of fixed words and numbers, and [`Reports`] tells it to models and to the
//!   log. What the product itself said is for the log alone, at level debug: standard error by [`log_lines`], and the causes.
//! - **Bounds.** A line has at most [`MAX_LINE_BYTES`], an answer at most [`MAX_ANSWER_BYTES`].
//! - **Configuration.** A [`Check`] finds all that is wrong at once; [`overlay`] makes the environment; [`Deps`] is what every
//!   provider is made with.
//!
//! ```
//! use std::time::Duration;
//!
//! use dsh_subagent_process::{JsonLines, Lines, Product, ProductSpec};
//! use dsh_subprocess::Launcher;
//! use serde_json::json;
//! use tokio_util::sync::CancellationToken;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let spec = ProductSpec {
//!     program: "/bin/sh".into(),
//!     args: vec!["-c".into(), "read request; echo '{\"answer\": 42}'; sleep 600 & sleep 600".into()],
//!     cwd: "/".into(),
//!     env: vec![("PATH".into(), "/usr/bin:/bin".into())],
//!     grace: Duration::from_secs(3),
//!     hurry: CancellationToken::new(),
//! };
//! let (product, streams) = Product::start(&Launcher::groups(), spec).await?;
//!
//! let requests = JsonLines::new(streams.stdin);
//! requests.send(&json!({ "question": "?" })).await?;
//! let mut answers = Lines::new(streams.stdout);
//! assert_eq!(answers.next().await?.as_deref(), Some(r#"{"answer": 42}"#));
//!
//! product.release().await?;
//! assert_eq!(product.exit().await.to_string(), "signal: SIGTERM");
//! # Ok(())
//! # })
//! # }
//! ```

mod service;

mod config;
mod environment;
mod task;

mod product;

mod lines;
mod log;

mod failure;
mod report;

pub use config::{Check, ConfigError, NativeProgram, milliseconds};
pub use environment::{Variable, overlay};
pub use failure::{Failure, Subject};
pub use lines::{JsonLines, LineError, Lines, MAX_LINE_BYTES};
pub use log::{LogLines, log_lines};
pub use product::{Product, ProductSpec, ReleaseError, Streams};
pub use report::Reports;
pub use service::{Deps, InstallError};
pub use task::{MAX_ANSWER_BYTES, TaskError, texts};
