//! The model seam: what a conversation is made of, what a model is asked, what it streams back, and who answers.
//!
//! A [`ModelRequest`] is everything that a model sees. A [`ModelAdapter`] sends it and gives a [`ModelStream`] of
//! [`Chunk`]s, from which an [`Assembler`] makes the whole [`Answer`]. No model is called here.
//!
//! ```
//! use std::sync::Arc;
//!
//! use dsh_llm::{
//!     AssistantBlock, Assembler, Chunk, ContentBlock, FinishReason, ModelAdapter, ModelError, ModelMessage, ModelRequest,
//!     ModelStream, RequestHeader, Sampling,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! /// Says back what it was told last.
//! struct Echo;
//!
//! struct Said(Vec<Chunk>);
//!
//! #[async_trait::async_trait]
//! impl ModelAdapter for Echo {
//!     async fn send(&self, request: Arc<ModelRequest>, _: CancellationToken) -> Result<Box<dyn ModelStream>, ModelError> {
//!         let Some(ModelMessage::User { content }) = request.messages.last() else {
//!             return Err(ModelError::lasting("INVALID_REQUEST", "nothing to answer"));
//!         };
//!         let text = dsh_llm::text_of(content);
//!         Ok(Box::new(Said(vec![Chunk::Finish(FinishReason::Stop), Chunk::TextDelta { index: 0, text }])))
//!     }
//! }
//!
//! #[async_trait::async_trait]
//! impl ModelStream for Said {
//!     async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
//!         Ok(self.0.pop())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), ModelError> {
//! let request = ModelRequest {
//!     header: RequestHeader {
//!         provider: "echo".into(),
//!         model: "echo-1".into(),
//!         system: String::new(),
//!         tools: Vec::new(),
//!         sampling: Sampling::default(),
//!     },
//!     messages: vec![ModelMessage::User { content: vec![ContentBlock::text("hello")] }],
//! };
//! let mut stream = Echo.send(Arc::new(request), CancellationToken::new()).await?;
//! let mut assembler = Assembler::new();
//! while let Some(chunk) = stream.next().await? {
//!     assembler.push(chunk);
//! }
//! let answer = assembler.finish();
//! assert_eq!(answer.content, [AssistantBlock::Text { text: "hello".into() }]);
//! assert_eq!(answer.finish, Some(FinishReason::Stop));
//! # Ok(())
//! # }
//! ```

mod call_id;
mod content;
mod request;

mod assembler;
mod chunk;

mod adapter;
mod error;
mod retry;

pub use adapter::{ModelAdapter, ModelRegistry, ModelStream};
pub use assembler::{Answer, Assembler};
pub use call_id::CallId;
pub use chunk::{Chunk, FinishReason, Usage};
pub use content::{AssistantBlock, ContentBlock, ToolCall, text_of};
pub use error::{DuplicateAdapter, ModelError, Retry};
pub use request::{ModelMessage, ModelRequest, RequestHeader, Sampling, ToolSpec};
pub use retry::{RetryPolicy, Tried};
