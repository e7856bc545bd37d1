//! What a tool call answered.

use serde_json::Value;

/// The answer to one `tools/call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The text blocks, in order. Everything these tools say is text.
    pub texts: Vec<String>,
    /// The tool says that it failed.
    pub is_error: bool,
}

impl Reply {
    /// Reads the `result` of a call.
    ///
    /// # Panics
    ///
    /// When it is no tool result of text blocks.
    pub fn from_result(result: &Value) -> Reply {
        let blocks = result["content"]
            .as_array()
            .unwrap_or_else(|| panic!("no content in {result}"));
        let text = |block: &Value| {
            block["text"]
                .as_str()
                .unwrap_or_else(|| panic!("not a text block: {block}"))
                .to_owned()
        };
        Reply {
            texts: blocks.iter().map(text).collect(),
            is_error: result["isError"].as_bool().unwrap_or(false),
        }
    }

    /// The tool's own text: the first block.
    pub fn text(&self) -> &str {
        self.texts.first().map_or("", String::as_str)
    }

    /// What was added to the result: notices of ended tasks.
    pub fn notices(&self) -> &[String] {
        self.texts.get(1..).unwrap_or_default()
    }

    /// The tool's own text, of a call that succeeded.
    ///
    /// # Panics
    ///
    /// When the tool failed.
    pub fn ok(&self) -> &str {
        assert!(!self.is_error, "the call failed: {self:?}");
        self.text()
    }

    /// The tool's own text, of a call that failed.
    ///
    /// # Panics
    ///
    /// When the tool succeeded.
    pub fn error(&self) -> &str {
        assert!(self.is_error, "the call should have failed: {self:?}");
        self.text()
    }
}
