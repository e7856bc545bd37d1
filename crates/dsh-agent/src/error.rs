//! Why an agent was not created, not asked, or not driven.

use dsh_scope::ScopeClosed;
use dsh_session::SessionId;

/// Why an agent was not created.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A live agent has this id. Dispose it first, or choose another id.
    #[error("agent \"{0}\" is already registered")]
    Duplicate(SessionId),
    /// The scope it was to live in is closing or closed.
    #[error("agent \"{id}\" has no scope to live in")]
    ScopeClosed {
        /// Id of the agent.
        id: SessionId,
        /// Names the scope.
        source: ScopeClosed<()>,
    },
}

/// The agent takes nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("agent \"{id}\" takes nothing any more")]
pub struct AgentDisposed {
    /// Id of the agent.
    pub id: SessionId,
}

/// Why nobody may drive an agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// Somebody drives it already.
    #[error("agent \"{0}\" has a driver already")]
    Driven(SessionId),
    /// It takes nothing any more.
    #[error(transparent)]
    Disposed(AgentDisposed),
}
