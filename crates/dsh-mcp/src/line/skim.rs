//! The id of a request that is too long to be kept.

use rmcp::model::RequestId;

/// The most bytes of a key or a value that are looked at, without the blanks before it.
const MAX_TOKEN: usize = 1024;

/// Looks through a message, piece by piece, for the id that its answer needs. Nothing is checked that the id does not hang on,
/// and no more is kept than one key and its value.
#[derive(Debug, Default)]
pub(crate) struct Skim {
    /// How many objects and lists are open.
    depth: usize,
    text: Text,
    /// What was read of the outermost object since its last colon or comma.
    token: Vec<u8>,
    /// The key whose value is being read.
    key: Option<String>,
    id: Option<RequestId>,
    /// It asks for something: an answer has an id, too.
    has_method: bool,
}

/// Whether the bytes are those of a string.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// Behind a backslash.
    Escaped,
}

impl Skim {
    /// Goes on with the next piece.
    pub(crate) fn read(&mut self, piece: &[u8]) {
        for byte in piece {
            self.step(*byte);
        }
    }

    /// The id, if this was a request that has one.
    pub(crate) fn id(self) -> Option<RequestId> {
        self.id.filter(|_| self.has_method)
    }

    fn step(&mut self, byte: u8) {
        let was = self.text;
        self.text = match (was, byte) {
            (Text::Outside, b'"') | (Text::Escaped, _) => Text::Inside,
            (Text::Outside, _) | (Text::Inside, b'"') => Text::Outside,
            (Text::Inside, b'\\') => Text::Escaped,
            (Text::Inside, _) => Text::Inside,
        };
        match (was, byte) {
            (Text::Outside, b'{' | b'[') => {
                self.keep(byte);
                self.depth += 1;
            }
            (Text::Outside, b'}' | b']') => {
                if self.depth == 1 {
                    self.end_value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            (Text::Outside, b':') if self.depth == 1 => {
                self.key = serde_json::from_slice(&std::mem::take(&mut self.token)).ok();
            }
            (Text::Outside, b',') if self.depth == 1 => self.end_value(),
            _ => self.keep(byte),
        }
    }

    /// Keeps what stands in the outermost object itself. What is cut off is no id.
    fn keep(&mut self, byte: u8) {
        let is_indent = self.token.is_empty() && byte.is_ascii_whitespace();
        if self.depth == 1 && self.token.len() < MAX_TOKEN && !is_indent {
            self.token.push(byte);
        }
    }

    fn end_value(&mut self) {
        let value = std::mem::take(&mut self.token);
        match self.key.take().as_deref() {
            Some("id") => self.id = serde_json::from_slice(&value).ok(),
            Some("method") => self.has_method = true,
            Some(_) | None => {}
        }
    }
}

#[cfg(test)]
mod tests;
