//! Agents, their registry, their scope and their inbox.
//!
//! An [`Agent`] is one live participant: a session, a scope that owns what lives and ends with it, and an inbox for
//! news it has not been told yet. Whoever leads it is elsewhere: a loop takes the seat of its [`Driver`] and runs turns,
//! a front door that only answers tool calls leases its inbox and tells it.
//!
//! ```
//! use dsh_agent::{AgentRegistry, AgentSpec, Notice, NoticeKey};
//! use dsh_llm::ContentBlock;
//! use dsh_scope::Scope;
//! use dsh_session::{Message, MessageSource, SessionId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let root = Scope::root("harness");
//! let agents = AgentRegistry::new();
//! let handle = agents.create(AgentSpec { id: SessionId::new("s-1"), cwd: None, within: root.clone() })?;
//! let agent = handle.agent().clone();
//!
//! agent.inbox().inject(Notice {
//!     key: NoticeKey::new("build"),
//!     message: Message {
//!         content: vec![ContentBlock::text("build finished")],
//!         source: MessageSource::Plugin {
//!             plugin: "ci".into(),
//!             form: "notice".into(),
//!             summary: "build".into(),
//!             subjects: Vec::new(),
//!         },
//!     },
//! });
//!
//! let lease = agent.inbox().lease();
//! assert_eq!(lease.messages().len(), 1);
//! lease.commit(); // the model got it
//! assert_eq!(agent.inbox().pending(), 0);
//!
//! handle.dispose().await?;
//! assert!(!agents.is_registered(&agent));
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - The id names a conversation, the [`InstanceId`] one live agent. Instances are never reused: what was owned by an
//!   agent that is gone never falls to a successor with the same id.
//! - [`AgentHandle::dispose`] stops the agent's driver, then closes its scope, so all that it owned has ended, and only
//!   then frees its id. It is memoized, runs in a task of its own, and happens, too, when the scope that the agent was
//!   created in closes.
//! - The [`Inbox`] tells a notice at most once and loses none.
//! - Whether an agent is idle is decided in the same moment as whether anything waits for it: no wake-up is lost.

mod agent;
mod error;
mod factory;
mod registry;

mod driver;
mod inbox;

pub use agent::{Agent, InstanceId};
pub use driver::{Claim, Driver, Turn};
pub use error::{AgentDisposed, AgentError, DriveError};
pub use factory::{AgentFactory, BoxError, ChildPlan, Compose, Composed, Instruction, ModelRoute};
pub use inbox::desk::{AgentStatus, Stop, WakePolicy};
pub use inbox::{Inbox, InboxLease, Notice, NoticeHold, NoticeKey};
pub use registry::{AgentHandle, AgentRegistry, AgentSpec};
