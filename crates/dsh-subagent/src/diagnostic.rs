//! What a provider says about a failure.

use std::fmt;

/// The most bytes of a diagnostic, its mark included.
const MAX_BYTES: usize = 4096;

/// Stands at the end of a diagnostic that was cut.
const MARK: &str = "\n[diagnostic truncated]";

/// What a provider says about a failure: at most 4,096 bytes of UTF-8, never empty. It stands beside the output, never in
/// it, and in no event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic(String);

impl Diagnostic {
    /// Keeps what fits, and marks what was cut. Nothing for an empty text.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let mut text = text.into();
        if text.is_empty() {
            return None;
        }
        if text.len() > MAX_BYTES {
            let mut end = MAX_BYTES - MARK.len();
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str(MARK);
        }
        Some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
