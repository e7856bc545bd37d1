//! Ids of tasks and their kinds.

use std::{fmt, sync::Arc};

/// Names one task: `<kind>-N`, counted per kind from 1, never given twice by one registry.
///
/// Ids are predictable on purpose; what protects a task is the check of its caller. Text that came from outside is
/// taken as it is: an id that was never given is simply unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Arc<str>);

/// What sort of work a task is (`bash`, `subagent`): the prefix of its id. Never empty; it may contain dashes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind(Arc<str>);

impl TaskId {
    /// The id with this text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Whether a word of a text is this id.
    pub fn is_named_in(&self, text: &str) -> bool {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_')));
        words.any(|word| word == self.as_str())
    }

    /// The `ordinal`th id of a kind.
    pub(crate) fn nth(kind: &Kind, ordinal: u64) -> Self {
        Self(format!("{kind}-{ordinal}").into())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its text, shared.
    pub(crate) fn text(&self) -> Arc<str> {
        self.0.clone()
    }

    /// Kind and ordinal, when the text has the form of an id.
    pub(crate) fn parts(&self) -> Option<(&str, u64)> {
        let (kind, ordinal) = self.0.rsplit_once('-')?;
        Some((kind, ordinal.parse().ok()?))
    }
}

impl Kind {
    /// The kind with this name; `None` when the name is empty.
    pub fn new(name: impl Into<Arc<str>>) -> Option<Self> {
        let name = name.into();
        (!name.is_empty()).then_some(Self(name))
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for TaskId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for TaskId {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}
