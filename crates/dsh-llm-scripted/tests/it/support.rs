//! Requests, and what comes back.

use std::sync::Arc;

use dsh_llm::{
    Answer, Assembler, AssistantBlock, Chunk, ContentBlock, ModelAdapter, ModelError, ModelMessage,
    ModelRequest, ModelStream, RequestHeader, Sampling,
};
use dsh_llm_scripted::ScriptedAdapter;
use tokio_util::sync::CancellationToken;

pub(crate) fn script(json: &str) -> ScriptedAdapter {
    ScriptedAdapter::from_json("test", json).unwrap()
}

pub(crate) fn request(model: &str, messages: Vec<ModelMessage>) -> Arc<ModelRequest> {
    Arc::new(ModelRequest {
        header: RequestHeader {
            provider: "scripted".into(),
            model: model.into(),
            system: String::new(),
            tools: Vec::new(),
            sampling: Sampling::default(),
        },
        messages,
    })
}

pub(crate) fn user(text: &str) -> ModelMessage {
    ModelMessage::User {
        content: vec![ContentBlock::text(text)],
    }
}

pub(crate) fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text { text: text.into() }
}

pub(crate) async fn send(model: &dyn ModelAdapter) -> Result<Box<dyn ModelStream>, ModelError> {
    model
        .send(request("test", vec![user("hello")]), CancellationToken::new())
        .await
}

/// A call that is refused, and why.
pub(crate) async fn refused(model: &dyn ModelAdapter) -> ModelError {
    match send(model).await {
        Err(error) => error,
        Ok(mut stream) => loop {
            match stream.next().await {
                Err(error) => break error,
                Ok(chunk) => assert!(chunk.is_some(), "it ends without an error"),
            }
        },
    }
}

/// All chunks of a stream that ends, and whether it then stays ended.
pub(crate) async fn chunks(mut stream: Box<dyn ModelStream>) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    while let Some(chunk) = stream.next().await.unwrap() {
        chunks.push(chunk);
    }
    assert_eq!(stream.next().await, Ok(None));
    chunks
}

/// The whole answer to one call.
pub(crate) async fn answer(model: &dyn ModelAdapter) -> Answer {
    let mut assembler = Assembler::new();
    for chunk in chunks(send(model).await.unwrap()).await {
        assembler.push(chunk);
    }
    assembler.finish()
}
