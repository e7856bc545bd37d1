//! Why there is no agent.

use dsh_agent::AgentError;
use dsh_scope::CloseError;

use dsh_agent::BoxError;

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// It could not be registered.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// It could not be composed.
    #[error("cannot compose the agent: {0}")]
    Compose(#[source] BoxError),
    /// It could not be composed, and not be disposed either.
    #[error("cannot dispose an agent that could not be composed: {0}")]
    Disposal(#[source] CloseError),
}
