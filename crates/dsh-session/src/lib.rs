//! Session identity, the append-only event log of one conversation, and its file.
//!
//! A [`Session`] is what happened in a conversation, in order. An [`Event`] gets the next sequence number and the time
//! when it is appended, and never changes afterwards. On the wire it is one JSON object, `{"type", "seq", "time",
//! "data"}`; what there is, [`EventData`] says.
//!
//! ```
//! use dsh_llm::ContentBlock;
//! use dsh_session::{EventData, Message, MessageSource, Session, SessionId, TurnEnd, TurnTrigger};
//!
//! let session = Session::new(SessionId::new("s-1"), None);
//! let mut feed = session.subscribe();
//! session.append(EventData::TurnStart { turn: 1, trigger: TurnTrigger::Notice })?;
//! let notice = Message {
//!     content: vec![ContentBlock::text("build finished")],
//!     source: MessageSource::Plugin {
//!         plugin: "ci".into(),
//!         form: "notice".into(),
//!         summary: "build".into(),
//!         subjects: vec!["build-1".into()],
//!     },
//! };
//! assert_eq!(session.append(EventData::UserMessage(notice))?, 1);
//! session.append(EventData::TurnEnd { turn: 1, reason: TurnEnd::Completed })?;
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! assert_eq!(feed.next().await, session.events());
//! # });
//! # Ok::<(), dsh_session::AppendError>(())
//! ```
//!
//! # Order
//!
//! Whatever happens, happens in a turn, and what concerns a request to the model in a step of it:
//!
//! ```text
//! turn/start
//!   user/message*                      before a step, between steps
//!   step/start
//!     request/header?                  the first, or another one than before
//!     assistant/message?               none when the request failed
//!     (tool/call? tool/result)*        each call of the answer has one result
//!     user/message*                    once every call has its result
//!   step/end
//! turn/end
//! ```
//!
//! A `model/choice` stands anywhere: a person chooses whenever they choose, and no model sees it.
//!
//! [`Session::append`] refuses what would break that, see [`Enclosure`], and so does reading a file.
//!
//! # What the model sees
//!
//! A model sees what is in the log and nothing else. A request is [derived](derive()) from all events strictly before its
//! `step/start`, under the header that was logged last, at the latest directly after it; [`request_at`] rebuilds it from
//! the log alone. A [`Derivation`] keeps up with a log at the cost of what is new in it.
//!
//! # In a file
//!
//! [`Session::persisted`] is a session with a [`SessionFile`]: a line with the [`SessionHeader`], then a line for each
//! event. Appending never waits for the disk; [`Session::flush`] does, and what it has returned `Ok` for is acknowledged:
//! no end of the harness loses it. One that fails, because the disk is full, loses nothing either, and the next one tries
//! again. No other harness can open the file meanwhile.
//!
//! ```
//! use dsh_session::{Durability, EventData, Session, SessionFile, SessionHeader, SessionId, TurnTrigger};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("s-1.jsonl");
//! let header = SessionHeader::new(SessionId::new("s-1"), None);
//! let session = Session::persisted(SessionFile::create(&path, header)?);
//! session.append(EventData::TurnStart { turn: 1, trigger: TurnTrigger::Message })?;
//! session.flush(Durability::Synced).await?;
//! drop(session); // or the machine loses power
//!
//! let file = SessionFile::open(&path)?;
//! assert_eq!(file.repair().map(|repair| repair.closers), Some(1)); // the turn was open
//! let session = Session::persisted(file);
//! assert_eq!(session.next_turn(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! A file that is read again is a log up to its last turn, or it is refused with the line that is not. After that turn a
//! harness that died may have left half a line, which is left out, and a turn that is open. It is ended: each call that
//! waits gets an error as its result, the turn ends with [`TurnEnd::Interrupted`].

mod clock;
mod session_id;

mod event;
mod header;
mod message;

mod enclosure;
mod error;
mod log;
mod lossless;

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
