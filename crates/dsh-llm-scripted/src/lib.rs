//! A model whose answers are written down beforehand. It needs no key and no network.
//!
//! A [`ScriptedAdapter`] answers call after call with turn after turn of a script, whatever it is asked.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_llm::{Assembler, AssistantBlock, ModelAdapter, ModelMessage, ModelRequest, RequestHeader, Sampling, text_of};
//! use dsh_llm_scripted::ScriptedAdapter;
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = r#"{"turns": [
//!     {"reasoning": "A greeting.", "text": "Hello to you."},
//!     {"error": {"message": "the model is on holiday", "code": "SERVER", "retry": "later"}}
//! ]}"#;
//! let model = ScriptedAdapter::from_json("greeting", script)?;
//! let request = Arc::new(ModelRequest {
//!     header: RequestHeader {
//!         provider: "scripted".into(),
//!         model: "greeting".into(),
//!         system: String::new(),
//!         tools: Vec::new(),
//!         sampling: Sampling::default(),
//!     },
//!     messages: Vec::new(),
//! });
//!
//! let mut stream = model.send(request.clone(), CancellationToken::new()).await?;
//! let mut assembler = Assembler::new();
//! while let Some(chunk) = stream.next().await? {
//!     assembler.push(chunk);
//! }
//! assert_eq!(assembler.finish().content[1], AssistantBlock::Text { text: "Hello to you.".into() });
//!
//! assert_eq!(model.finish().unwrap_err().to_string(), "script greeting: turns[1] was never asked for");
//! assert_eq!(model.send(request, CancellationToken::new()).await.err().unwrap().code, "SERVER");
//! model.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! # The script
//!
//! A JSON object with one key, `turns`: an array of objects, of which each answers one call of the model, in order.
//!
//! | key of a turn | value | what it does |
//! |---|---|---|
//! | `text` | string | The model says this. |
//! | `reasoning` | string | Before that, it thinks this. |
//! | `tool_calls` | array of calls | After that, it calls these tools. |
//! | `finish` | `"stop"`, `"tool-calls"` or `"max-tokens"` | Why the answer ends; by default `tool-calls` if there are calls, else `stop`. |
//! | `hang` | `true` | The answer does not end: it waits until the request is cancelled. |
//! | `cut` | `true` | The stream ends without saying why, as if the connection was lost. |
//! | `error` | object | The request fails: at once, or after what the turn says. |
//! | `expect` | array of strings | Each must stand in what the model was told since its last answer, tool results included. |
//! | `wait_for_file` | path | The answer begins when this file exists, see [`WAIT_LIMIT`]. |
//!
//! | key of a call | value | |
//! |---|---|---|
//! | `name` | string | Name of the tool. |
//! | `arguments` | object or string | An object is what the tool gets, a string is what the model wrote, JSON or not; by default `{}`. |
//! | `id` | string | By default `call-1`, `call-2`, … through the whole script. |
//!
//! | key of `error` | value | |
//! |---|---|---|
//! | `message` | string | What the provider says. |
//! | `code` | string | For programs; by default `SCRIPTED`. |
//! | `retry` | `"later"` or `"never"` | Whether asking again may help; by default `never`. A request that is sent again is another call. |
//!
//! `finish`, `hang`, `cut` and `error` exclude each other. A turn with none of the keys above that say or end something
//! is refused, and so is any other key; a script is refused with all its faults at once, each with its place.
//!
//! # A script that does not fit
//!
//! A scenario cannot notice by itself that it no longer shows what it was written for. So each of these fails the request
//! for good, with a [`ModelError`](dsh_llm::ModelError) that names the script and the call, and
//! [`finish`](ScriptedAdapter::finish) tells it once more:
//!
//! | code | |
//! |---|---|
//! | `SCRIPT_EXHAUSTED` | A call for which there is no turn. |
//! | `SCRIPT_MISMATCH` | What `expect` names was not told. |
//! | `SCRIPT_TIMEOUT` | The file of `wait_for_file` did not come. |
//!
//! `finish` also tells which turns nobody asked for.
//!
//! # More than one agent
//!
//! A request does not say whose it is. So there is one place in a script, and agents that share an adapter take turns in
//! the order of their calls. [`ScriptedModels`] is an adapter for which the model's name is a file; it has one place for
//! each file.
//!
//! # Replay
//!
//! A session's log has the model's answers in it: [`ScriptedAdapter::from_session_log`] gives them again, and so does
//! [`ScriptedModels`] for a file named `….jsonl`. What was interrupted then hangs now. How the text was split into pieces
//! is not in the log.

mod script;

mod decode;
mod error;
mod replay;

mod adapter;
mod models;

pub use adapter::{ScriptedAdapter, WAIT_LIMIT};
pub use error::{Fault, ScriptError, ScriptMisfit};
pub use models::ScriptedModels;
