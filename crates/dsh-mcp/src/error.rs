//! Why a client could not be served.

use dsh_agent::AgentError;

/// Why a client could not be served. Nothing was started then.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The services have been shut down.
    #[error("cannot serve a client: {0}")]
    Closed(String),
    /// The agent that stands for the client could not be made.
    #[error("cannot serve a client: {0}")]
    Agent(#[from] AgentError),
    /// That agent could not have the tools of its preset.
    #[error("cannot serve a client: {0}")]
    Compose(String),
    /// The instructions could not be put together.
    #[error("cannot assemble the instructions: {0}")]
    Instructions(String),
}
