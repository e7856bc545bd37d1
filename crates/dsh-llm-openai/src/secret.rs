//! A key that is never shown.

use std::fmt;
use std::sync::Arc;

/// A key that is never shown: it has no `Display`, and its `Debug` form says nothing about it.
///
/// White space around it is dropped, so that a key may come from a file with a line end.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Hides `text`.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    /// The key itself. Whoever asks for it must not let it out again.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without the key in it, in whatever case: what handles text on its way may have changed that.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        let key = self.0.to_ascii_lowercase();
        // Of the same length: a place in one is a place in the other.
        let lower = text.to_ascii_lowercase();
        let mut hidden = String::with_capacity(text.len());
        let mut end = 0;
        for (place, found) in lower.match_indices(&key).filter(|(_, found)| !found.is_empty()) {
            hidden.push_str(&text[end..place]);
            hidden.push_str("[key]");
            end = place + found.len();
        }
        hidden.push_str(&text[end..]);
        hidden
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
