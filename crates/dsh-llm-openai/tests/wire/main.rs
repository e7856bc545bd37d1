//! The adapter against servers that behave, and servers that do not.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod server;

mod answers;
mod bounds;
mod cancel;
mod closed;
mod key;
mod refusals;
mod requests;
mod silence;
mod tls;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use dsh_llm::{
    Answer, Assembler, ContentBlock, ModelAdapter, ModelError, ModelMessage, ModelRequest, ModelStream,
    RequestHeader, Sampling,
};
use dsh_llm_openai::{OpenAiAdapter, OpenAiConfig, Secret};
use tokio_util::sync::CancellationToken;

/// A key that is easy to find where it must not be.
pub(crate) const KEY: &str = "sk-0123456789abcdef";

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(20);

pub(crate) fn request() -> Arc<ModelRequest> {
    Arc::new(ModelRequest {
        header: RequestHeader {
            provider: "test".into(),
            model: "m".into(),
            system: String::new(),
            tools: Vec::new(),
            sampling: Sampling::default(),
        },
        messages: vec![ModelMessage::User {
            content: vec![ContentBlock::text("hi")],
        }],
    })
}

pub(crate) fn config(url: &str) -> OpenAiConfig {
    OpenAiConfig {
        api_key: Some(Secret::new(KEY)),
        idle_timeout: Duration::from_secs(10),
        ..OpenAiConfig::new(url)
    }
}

/// Whatever comes, it comes soon.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took longer than {DEADLINE:?}"),
    }
}

pub(crate) async fn send(config: OpenAiConfig) -> Result<Box<dyn ModelStream>, ModelError> {
    let adapter = OpenAiAdapter::new(config).unwrap();
    soon("the head", adapter.send(request(), CancellationToken::new())).await
}

/// What came, and why it ended early if it did.
pub(crate) async fn read(mut stream: Box<dyn ModelStream>) -> (Answer, Option<ModelError>) {
    let mut assembler = Assembler::new();
    loop {
        match soon("a chunk", stream.next()).await {
            Ok(Some(chunk)) => assembler.push(chunk),
            Ok(None) => return (assembler.finish(), None),
            Err(error) => {
                assert_eq!(
                    soon("the end", stream.next()).await,
                    Ok(None),
                    "nothing after an error"
                );
                return (assembler.finish(), Some(error));
            }
        }
    }
}

/// Sends and reads; the error, wherever it came.
pub(crate) async fn ask(config: OpenAiConfig) -> Result<Answer, ModelError> {
    let (answer, error) = read(send(config).await?).await;
    error.map_or(Ok(answer), Err)
}
