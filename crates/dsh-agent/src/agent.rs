//! One live agent and its identity.

use std::{
    fmt,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use dsh_scope::Scope;
use dsh_session::{Session, SessionId};

use crate::Inbox;

/// One live agent. It is shared as an `Arc`; having one gives no right to end it, see
/// [`AgentHandle`](crate::AgentHandle).
pub struct Agent {
    instance: InstanceId,
    session: Session,
    scope: Scope,
    inbox: Inbox,
}

/// Identity of one live agent: never reused in the life of the process, also when the session id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(u64);

impl Agent {
    pub(crate) fn new(session: Session, scope: Scope) -> Self {
        Self {
            instance: InstanceId::next(),
            session,
            scope,
            inbox: Inbox::new(),
        }
    }

    /// The id of its session, which is its own.
    pub fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Which agent this is, among all that ever had its id.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// Its conversation.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Owns what lives and ends with it.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What it has not been told yet.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The directory its tools work in.
    pub fn cwd(&self) -> Option<&Path> {
        self.session.cwd()
    }
}

impl InstanceId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("id", self.id())
            .field("instance", &self.instance)
            .finish_non_exhaustive()
    }
}
