//! From chunks to a whole answer.

use std::collections::BTreeMap;

use crate::{AssistantBlock, CallId, Chunk, FinishReason, ToolCall, Usage};

/// Collects chunks. Total: any sequence of chunks gives an answer.
#[derive(Debug, Default)]
pub struct Assembler {
    blocks: BTreeMap<usize, Block>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
}

/// A whole answer, or as much of it as came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the model wrote, in the order of the indices; empty blocks left out.
    pub content: Vec<AssistantBlock>,
    /// What it cost, if that was told.
    pub usage: Option<Usage>,
    /// Why it is over; `None` when the stream ended without saying so, which means that it was cut.
    pub finish: Option<FinishReason>,
}

#[derive(Debug)]
enum Block {
    Ended(AssistantBlock),
    Text(String),
    Reasoning(String),
    ToolCall {
        id: Option<CallId>,
        name: String,
        arguments: String,
    },
}

impl Assembler {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a chunk. What comes for a block that has ended, or of another kind than the block is, or after the finish,
    /// is ignored.
    pub fn push(&mut self, chunk: Chunk) {
        if self.finish.is_some() {
            return;
        }
        match chunk {
            Chunk::TextDelta { index, text } => {
                let block = self.blocks.entry(index);
                if let Block::Text(so_far) = block.or_insert_with(|| Block::Text(String::new())) {
                    so_far.push_str(&text);
                }
            }
            Chunk::ReasoningDelta { index, text } => {
                let block = self.blocks.entry(index);
                if let Block::Reasoning(so_far) = block.or_insert_with(|| Block::Reasoning(String::new())) {
                    so_far.push_str(&text);
                }
            }
            Chunk::ToolCallDelta {
                index,
                id,
                name,
                arguments,
            } => self.push_call(index, id, name, &arguments),
            Chunk::BlockEnd { index, block } => {
                let entry = self
                    .blocks
                    .entry(index)
                    .or_insert_with(|| Block::Ended(block.clone()));
                if !matches!(entry, Block::Ended(_)) {
                    *entry = Block::Ended(block);
                }
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::Finish(reason) => self.finish = Some(reason),
        }
    }

    /// The answer so far. Blocks that did not end are what their deltas make; a call whose name never came is left out.
    pub fn finish(self) -> Answer {
        Answer {
            content: self.blocks.into_values().filter_map(Block::assemble).collect(),
            usage: self.usage,
            finish: self.finish,
        }
    }

    fn push_call(&mut self, index: usize, id: Option<CallId>, name: Option<String>, more: &str) {
        let block = self.blocks.entry(index).or_insert_with(|| Block::ToolCall {
            id: None,
            name: String::new(),
            arguments: String::new(),
        });
        if let Block::ToolCall {
            id: known,
            name: so_far,
            arguments,
        } = block
        {
            if known.is_none() {
                *known = id;
            }
            if let Some(name) = name.filter(|_| so_far.is_empty()) {
                *so_far = name;
            }
            arguments.push_str(more);
        }
    }
}

impl Block {
    fn assemble(self) -> Option<AssistantBlock> {
        let block = match self {
            Self::Ended(block) => block,
            Self::Text(text) => AssistantBlock::Text { text },
            Self::Reasoning(text) => AssistantBlock::Reasoning { text },
            Self::ToolCall { id, name, arguments } => AssistantBlock::ToolCall(ToolCall {
                id: id.unwrap_or_else(|| CallId::new("")),
                name,
                arguments,
            }),
        };
        let says_something = match &block {
            AssistantBlock::Text { text } | AssistantBlock::Reasoning { text } => !text.is_empty(),
            AssistantBlock::ToolCall(call) => !call.name.is_empty(),
        };
        says_something.then_some(block)
    }
}

#[cfg(test)]
mod tests;
