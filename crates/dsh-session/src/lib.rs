//! Session identity and the append-only event log of one conversation.
//!
//! A [`Session`] is what was said, in order: messages to the model, its tool calls, their results. An [`Event`] gets the
//! next sequence number and the time when it is appended, and never changes afterwards. On the wire an event is one
//! JSON object, `{"type", "seq", "time", "data"}`.
//!
//! ```
//! use dsh_llm::ContentBlock;
//! use dsh_session::{EventData, Message, MessageSource, Session, SessionId};
//!
//! let session = Session::new(SessionId::new("s-1"), None);
//! let notice = Message {
//!     content: vec![ContentBlock::text("build finished")],
//!     source: MessageSource::Plugin {
//!         plugin: "tasks".into(),
//!         form: "notice".into(),
//!         summary: "build".into(),
//!     },
//! };
//! assert_eq!(session.append(EventData::UserMessage(notice)), 0);
//! assert_eq!(session.events().len(), 1);
//! ```

mod event;
mod message;
mod session;
mod session_id;

pub use event::{Event, EventData};
pub use message::{Message, MessageSource};
pub use session::Session;
pub use session_id::SessionId;
