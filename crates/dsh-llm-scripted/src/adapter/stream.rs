//! One answer, in pieces.

use std::collections::VecDeque;

use async_trait::async_trait;
use dsh_llm::{AssistantBlock, Chunk, FinishReason, ModelError, ModelStream};
use tokio_util::sync::CancellationToken;

use crate::script::{End, Turn};

pub(super) struct ScriptedStream {
    chunks: VecDeque<Chunk>,
    /// Taken when it was told.
    end: Option<End>,
    token: CancellationToken,
}

impl ScriptedStream {
    /// The answer of a turn, unless that fails before it says anything.
    pub(super) fn begin(turn: Turn, token: CancellationToken) -> Result<Box<dyn ModelStream>, ModelError> {
        let mut chunks: VecDeque<_> = turn.content.into_iter().zip(0..).flat_map(pieces).collect();
        match turn.end {
            End::Fail(error) if chunks.is_empty() => return Err(error),
            End::Fail(_) | End::Finish(_) | End::Hang | End::Cut => {}
        }
        chunks.extend(turn.usage.map(Chunk::Usage));
        Ok(Box::new(Self {
            chunks,
            end: Some(turn.end),
            token,
        }))
    }
}

#[async_trait]
impl ModelStream for ScriptedStream {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        if self.end.is_some() && self.token.is_cancelled() {
            self.chunks.clear();
            self.end = Some(End::Finish(FinishReason::Aborted));
        }
        if let Some(chunk) = self.chunks.pop_front() {
            return Ok(Some(chunk));
        }
        if let Some(End::Hang) = self.end {
            // Nothing is taken before this is over, so it may be dropped here.
            self.token.cancelled().await;
            self.end = Some(End::Finish(FinishReason::Aborted));
        }
        match self.end.take() {
            Some(End::Finish(reason)) => Ok(Some(Chunk::Finish(reason))),
            Some(End::Fail(error)) => Err(error),
            Some(End::Cut | End::Hang) | None => Ok(None),
        }
    }
}

/// A block in pieces: text word by word, a call in two.
fn pieces((block, index): (AssistantBlock, usize)) -> Vec<Chunk> {
    let mut chunks: Vec<_> = match &block {
        AssistantBlock::Text { text } => words(text).map(|text| Chunk::TextDelta { index, text }).collect(),
        AssistantBlock::Reasoning { text } => words(text)
            .map(|text| Chunk::ReasoningDelta { index, text })
            .collect(),
        AssistantBlock::ToolCall(call) => vec![
            Chunk::ToolCallDelta {
                index,
                id: Some(call.id.clone()),
                name: Some(call.name.clone()),
                arguments: String::new(),
            },
            Chunk::ToolCallDelta {
                index,
                id: None,
                name: None,
                arguments: call.arguments.clone(),
            },
        ],
    };
    chunks.push(Chunk::BlockEnd { index, block });
    chunks
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(' ').map(str::to_owned)
}
