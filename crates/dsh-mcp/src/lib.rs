//! An MCP server that offers `bash` and the task tools to any client.
//!
//! [`serve`] speaks the Model Context Protocol over any pair of streams, one JSON message per line, and nothing but
//! protocol is ever written. A connection is one agent: its tasks are its own, and they end with it.
//!
//! ```
//! use dsh_agent_core::{AgentCore, Config};
//! use dsh_mcp::{Served, serve};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let core = AgentCore::assemble(Config::default())?;
//! let (client, server) = tokio::io::duplex(1 << 16);
//! let (input, output) = tokio::io::split(server);
//! let (answers, mut requests) = tokio::io::split(client);
//!
//! let client = async {
//!     let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",
//!         "capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#;
//!     requests.write_all(hello.replace('\n', "").as_bytes()).await?;
//!     requests.write_all(b"\n").await?;
//!     let answer = BufReader::new(answers).lines().next_line().await?.unwrap_or_default();
//!     assert!(answer.contains(r#""serverInfo":{"name":"dsh""#));
//!     requests.shutdown().await // the client leaves
//! };
//! let (served, client) = tokio::join!(serve(&core, input, output, Default::default()), client);
//! client?;
//! assert_eq!(served?, Served::InputEnded);
//! core.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - **Delivered means written.** What a tool result tells (the end of a task, a part of its output, a notice) counts
//!   as told when the write of that result returned and the client had not cancelled the request by then. After a
//!   cancellation, a failed write or the end it is as if it had never been read: the next reader gets it.
//! - **A cancellation that crosses its answer** is judged by what the server has read of it. *Before the write begins:*
//!   the answer is not written. *While it is written:* it goes out whole, since half a line would break the next, and
//!   counts as unread: the next reader gets the same bytes again, unmarked. Whoever ignores an answer to a cancelled
//!   request, as MCP asks, sees them once, and whoever reads it twice; they are never lost. *After the write:* it means
//!   nothing any more, since MCP has no message that says an answer was taken, and what was written counts as told. A
//!   client that had given up by then and ignores the answer finds what it told in the task's resource.
//! - **Notices.** MCP cannot wake a model, so pending notices of the agent are added to the next tool result, as one
//!   more text block that begins with a newline. A result that tells a task's end itself never carries its notice.
//! - **Side by side.** Every request is served at once; a waiting one holds back no other.
//!   `notifications/cancelled` cancels the call's token, ends it with everything it runs, and drops its answer.
//! - **Resources.** Every task of the agent is `dsh://task/<id>`, `text/plain`: all output so far (the last 256 KiB)
//!   and the status line. Reading one consumes nothing and counts as told to nobody. Clients are notified when tasks
//!   come and go, and of changes of those they subscribed to.
//! - **Bad input.** A line that is no JSON, or no request, gets a JSON-RPC error and the server goes on; so do
//!   messages over 4 MiB (4,194,304 bytes, under their id if they have one), batches (each request in one gets its own error), requests before `initialize`, and an id that is in
//!   use by a request in flight. Wrong tool arguments are an error *result*, for the model to see.
//! - **The end.** When the input ends, everything is disposed at once; [`serve`] returns when it is gone.

mod service;

mod handler;
mod resources;
mod watch;

mod transport;
mod writer;

mod calls;
mod line;
mod message;

mod error;

#[doc(hidden)]
pub mod fuzzing;

pub use dsh_agent_core::Served;
pub use error::ServeError;
pub use service::serve;
