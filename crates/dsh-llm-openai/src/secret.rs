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

    /// `text` without the key in it.
    pub(crate) fn hidden_in(&self, text: &str) -> String {
        text.replace(&*self.0, "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
