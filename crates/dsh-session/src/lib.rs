//! Session identity, the append-only event log of one conversation, and its file.

mod clock;
mod session_id;

mod event;
mod header;
mod message;

mod enclosure;
mod error;

mod derivation;
mod session;
mod store;

pub use derivation::{Derivation, derive, request_at};
pub use enclosure::Enclosure;
pub use error::{AppendError, Ordinal};
pub use event::{ErrorInfo, Event, EventData, HeaderReason, TurnEnd, TurnTrigger};
pub use header::SessionHeader;
pub use message::{Message, MessageSource};
pub use session::{Session, SessionFeed};
pub use session_id::SessionId;
pub use store::{Durability, Repair, SessionFile, StoreError};
