//! An ACP agent: an editor talks to a model that works with `bash` and background tasks.
//!
//! [`serve`] speaks the Agent Client Protocol, version 1, over any pair of streams, one JSON message per line, and
//! nothing but protocol is ever written. Each session is an agent with a log of its own; the connection owns them all.
//!
//! ```
//! use dsh_acp::{Served, Settings, serve};
//! use dsh_agent_core::{AgentCore, Config};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let home = directory.path();
//! let core = AgentCore::assemble(Config::default())?;
//! let settings = Settings { sessions: home.join("sessions"), models: Vec::new() };
//! let (editor, agent) = tokio::io::duplex(1 << 16);
//! let (input, output) = tokio::io::split(agent);
//! let (answers, mut requests) = tokio::io::split(editor);
//!
//! let editor = async {
//!     let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
//!     requests.write_all(hello.as_bytes()).await?;
//!     requests.write_all(b"\n").await?;
//!     let answer = BufReader::new(answers).lines().next_line().await?.unwrap_or_default();
//!     assert!(answer.contains(r#""agentInfo":{"name":"dsh""#));
//!     requests.shutdown().await // the editor leaves
//! };
//! let (served, editor) = tokio::join!(serve(&core, input, output, Default::default(), settings), editor);
//! editor?;
//! assert_eq!(served?, Served::InputEnded);
//! core.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Requests
//!
//! | method | what it does |
//! |---|---|
//! | `initialize` | Version 1, `loadSession`, `session/list`, `session/close`; text and links in prompts. `authenticate` does nothing. |
//! | `session/new` | A session in `cwd`, an absolute path of a directory. `additionalDirectories`, `mcpServers` and `systemPrompt` are refused. |
//! | `session/load` | A session of this store and the same `cwd`: everything in its log is shown again, then it goes on. |
//! | `session/list` | The sessions of this store, of one `cwd` if that is asked for, the last used first, 50 at a time; their titles are what was asked first. |
//! | `session/close` | Ends a session, its turn and its tasks; its log stays. |
//! | `session/prompt` | One at a time per session. Answered when the turn ends that its message is in. |
//! | `session/cancel` | Stops the turn and the commands in it. Background tasks go on; the prompt is answered `cancelled`. |
//! | `session/set_config_option` | The option `model`: one of [`Settings::models`] or the configured one. The choice is logged: a session that is loaded again has it. |
//!
//! A turn that completed is `end_turn`, one that met the model's limit `max_tokens`, one that was stopped `cancelled`; one
//! that failed is the error -32603, `Internal error: turn failed: …`.
//!
//! # What an editor sees
//!
//! - **Text.** What the model says and thinks is streamed, and it comes exactly once: the log decides what was said, and
//!   whatever of it was not streamed follows when it is logged. Only a request that failed in the middle leaves text that
//!   is in no answer; the next try has another `messageId`.
//! - **Cards.** Each call has a card, under an id that the session has once. A command in the foreground is a terminal for
//!   editors with `_meta.terminal_output` among their capabilities, and text for others; everything else is a titled row.
//!   What a card says of a call before it runs has no control or format characters but line breaks and tabs: they are
//!   shown escaped.
//! - **Ends of tasks.** A notice is a row of its own, completed, with what the model is told: neither the user nor the model
//!   said it, and it is why the agent goes on when nobody asked. The turn that follows streams like any other; it answers
//!   no prompt, not even one that is waiting.
//! - **Live tasks.** A `session_info_update` with `_meta["dsh/tasks"]`, an array of `{id, kind, label, status, startedAt}`,
//!   whenever that changes.
//! - **News that are no history.** Editors with `session.notices` among their capabilities are told when a request failed
//!   and is sent again, and when a turn failed that no prompt asked for. Others are told the latter as a message.
//! - **Questions.** A call that a policy wants to be asked for is `session/request_permission`: allow once, or reject.
//!   Anything but an allowing answer denies.
//!
//! # What holds
//!
//! - **Sessions are kept** under [`Settings::sessions`], one log per session, named by its id, which is a UUID. One that is
//!   in use by another harness, damaged or unknown is not loaded, and the error says which it is.
//! - **Order.** One task per session sends everything of it, in the order of the log, and answers the prompt behind it.
//! - **Bad input.** A line that is no JSON, or no request, gets a JSON-RPC error and the agent goes on; so does a line over
//!   4 MiB. An editor that does not read is not read any more, and holds up nobody's end.
//! - **The end.** When the input ends, every session is closed, all at once; [`serve`] returns when it is gone. Nothing
//!   that a session started outlives the connection.

mod service;

mod connection;
mod handler;
mod sessions;

mod approval;
mod background;
mod card;
mod feed;
mod prompt;
mod transcript;
mod visible;

mod catalog;
mod store;

mod ending;
mod line;
mod outbox;
mod wire;

mod config;
mod error;

pub use config::Settings;
pub use dsh_agent_core::Served;
pub use error::ServeError;
pub use service::serve;
