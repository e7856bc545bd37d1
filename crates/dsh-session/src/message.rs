//! Messages to the model, and who says them.

use dsh_llm::ContentBlock;
use serde::{Deserialize, Serialize};

/// A message to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// What the model reads.
    pub content: Vec<ContentBlock>,
    /// Who says it.
    pub source: MessageSource,
}

/// Who a message comes from. It is kept beside the content, so no content can pretend to be of another source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum MessageSource {
    /// A person.
    User,
    /// A part of the harness.
    Plugin {
        /// Which part.
        plugin: String,
        /// What sort of message it is, for those who show it; `notice` for news that nobody asked for.
        form: String,
        /// One line for a reader who does not want the content.
        summary: String,
        /// Ids of what it is about, such as those of tasks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        subjects: Vec<String>,
    },
}

impl Message {
    /// What a person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            source: MessageSource::User,
        }
    }
}
