//! A part of the prompt.

/// A part of the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Names it in errors; unique in a registry.
    pub name: String,
    /// Its place: ascending.
    pub order: i32,
    /// Its text, with references to variables. An empty one leaves no trace in the prompt.
    pub text: String,
}

impl Section {
    /// A section with these parts.
    pub fn new(name: impl Into<String>, order: i32, text: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            order,
            text: text.into(),
        }
    }
}
