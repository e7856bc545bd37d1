//! The words a model conversation is made of: call ids and content blocks.
//!
//! This crate is the bottom of the model seam. It names what every layer above passes around (a log entry, a tool
//! result, a notice are all lists of [`ContentBlock`]s) and does nothing with it: no model is called here.
//!
//! ```
//! use dsh_llm::{CallId, ContentBlock, text_of};
//!
//! let call = CallId::new("call_7");
//! let content = vec![ContentBlock::text("two lines\n"), ContentBlock::text("of output")];
//!
//! assert_eq!(call.to_string(), "call_7");
//! assert_eq!(text_of(&content), "two lines\nof output");
//! assert_eq!(serde_json::to_string(&content[1])?, r#"{"type":"text","text":"of output"}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod call_id;
mod content;

pub use call_id::CallId;
pub use content::{ContentBlock, text_of};
