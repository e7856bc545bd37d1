//! Why an agent was not created.

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
