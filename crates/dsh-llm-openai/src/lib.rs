//! A model adapter for OpenAI-compatible chat-completions endpoints, DeepSeek first.
//!
//! An [`OpenAiAdapter`] is a [`ModelAdapter`](dsh_llm::ModelAdapter) made of an [`OpenAiConfig`]. Each request is one
//! `POST <base URL>/chat/completions` on a connection of its own, answered by a stream of events; it is tried once.
//! Whether a [`ModelError`](dsh_llm::ModelError) is worth another try is said in the error and decided by the caller.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_llm::{Assembler, ContentBlock, ModelAdapter, ModelMessage, ModelRequest, RequestHeader, Sampling};
//! use dsh_llm_openai::{OpenAiAdapter, OpenAiConfig};
//! use tokio_util::sync::CancellationToken;
//! # use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}/v1", server.local_addr()?);
//! # let serving = async {
//! #     let (mut client, _) = server.accept().await?;
//! #     let mut seen = Vec::new();
//! #     while !seen.ends_with(b"}}") {
//! #         client.read_buf(&mut seen).await?;
//! #     }
//! #     let event = r#"{"choices":[{"delta":{"content":"hello"},"finish_reason":"stop"}]}"#;
//! #     let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {event}\n\ndata: [DONE]\n\n");
//! #     client.write_all(answer.as_bytes()).await
//! # };
//! # let asking = async {
//! // A provider with a key: OpenAiConfig::deepseek(Secret::new(key)).
//! let adapter = OpenAiAdapter::new(OpenAiConfig::new(url))?;
//! let request = ModelRequest {
//!     header: RequestHeader {
//!         provider: "local".into(),
//!         model: "small".into(),
//!         system: String::new(),
//!         tools: Vec::new(),
//!         sampling: Sampling::default(),
//!     },
//!     messages: vec![ModelMessage::User { content: vec![ContentBlock::text("say hello")] }],
//! };
//! let mut stream = adapter.send(Arc::new(request), CancellationToken::new()).await?;
//! let mut assembler = Assembler::new();
//! while let Some(chunk) = stream.next().await? {
//!     assembler.push(chunk);
//! }
//! assert_eq!(assembler.finish().content[0].as_text(), Some("hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # };
//! # let (served, asked) = tokio::join!(serving, asking);
//! # served?;
//! # asked
//! # }
//! ```
//!
//! # What is sent
//!
//! The base URL is all that comes before `/chat/completions`. Each message is sent as a message of its own; a tool
//! result without text reads `(no output)`; a turn that only calls tools has the content `""`. What differs from
//! provider to provider is the [`Flavour`]: DeepSeek refuses a conversation in which a turn that called tools has lost
//! its reasoning, so for it all reasoning goes back (where it is not needed it is ignored).
//!
//! # What comes back
//!
//! Text, reasoning and each tool call are a block each, in the order in which they begin; blocks are never ended by
//! themselves. [`Usage`](dsh_llm::Chunk::Usage) and [`Finish`](dsh_llm::Chunk::Finish) come when the stream is over. A
//! stream that breaks off after the provider said why the answer is over is complete; before that it is cut.
//!
//! | code | when | tried again? |
//! |---|---|---|
//! | `CONNECT` | no connection: name, TCP, proxy; or TLS | yes; not after a refused certificate or what is no TLS |
//! | `IDLE_TIMEOUT` | nothing came for `idle_timeout` | yes |
//! | `STREAM_CLOSED` | closed before the answer was complete | yes |
//! | `MALFORMED_RESPONSE` | no HTTP, no JSON, a flood | yes |
//! | `MALFORMED_RESPONSE` | a page instead of a stream, or a compressed one | no |
//! | `AUTH` | 401, 403 | no |
//! | `RATE_LIMIT` | 429 | yes, with `Retry-After` |
//! | `CONTEXT_WINDOW_EXCEEDED`, `INVALID_REQUEST` | 400 | no |
//! | `SERVER` | 5xx; a failure reported within the stream; out of resources | yes, with `Retry-After` |
//! | `HTTP_408` | 408 | yes, with `Retry-After` |
//! | `HTTP_<status>` | any other, redirects too: none is followed | no |
//!
//! A content filter, and a reason that is not known, come as
//! [`FinishReason::Error`](dsh_llm::FinishReason::Error) with `CONTENT_FILTER` or `UNKNOWN_FINISH_REASON`.
//!
//! # The key
//!
//! A [`Secret`] is sent as `Authorization` to the base URL and nowhere else. It is in no log, no `Debug` form and no
//! error, also when the server sends it back in a refusal. Over plain `http` it leaves this machine only when
//! [`CleartextKey::Anywhere`] says so. Proxies (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are used for `https` only and see
//! no more than the name of the host. Trusted are the system's certificates, or those that `SSL_CERT_FILE` and
//! `SSL_CERT_DIR` name.
//!
//! # Bounds
//!
//! The head of an answer has about 64 KiB at most, an event 4 MiB, an answer 32 MiB and 1024 blocks, and a provider's words in
//! an error 500 characters. The stream itself holds one event, not the answer.
//!
//! # Cancelling
//!
//! Nothing runs in the background: a connection lives in the future or in the stream that uses it, so dropping that
//! closes it at once. A cancelled token closes it, too, when the future or the stream is next polled; the stream then
//! finishes as aborted.

mod config;
mod error;
mod secret;

mod adapter;
mod stream;

mod answer;
mod body;
mod failure;
mod request;
mod sse;
mod wire;

mod connect;
mod endpoint;
mod exchange;

pub use adapter::OpenAiAdapter;
pub use body::read_kept;
pub use config::{CleartextKey, Flavour, OpenAiConfig};
pub use error::ConfigError;
pub use secret::Secret;
