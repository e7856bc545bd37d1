//! Why an editor could not be served, and what it is told when a request is refused.

use std::fmt::Display;

use agent_client_protocol::{Error, ErrorCode};

/// Why an editor could not be served. Nothing was started then.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The services have been shut down.
    #[error("cannot serve an editor: {0}")]
    Closed(String),
}

/// The request is wrong.
pub(crate) fn invalid(reason: impl Display) -> Error {
    Error::new(-32602, format!("Invalid params: {reason}"))
}

/// The request was right, and could not be done.
pub(crate) fn internal(reason: impl Display) -> Error {
    Error::new(-32603, format!("Internal error: {reason}"))
}

/// There is no such session.
pub(crate) fn not_found(reason: impl Display) -> Error {
    let code = ErrorCode::RESOURCE_NOT_FOUND;
    Error::new(code.value(), format!("{code}: {reason}"))
}
