//! What an editor is told when a request is refused.

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
    refused(ErrorCode::INVALID_PARAMS, reason)
}

/// The request was right, and could not be done.
pub(crate) fn internal(reason: impl Display) -> Error {
    refused(ErrorCode::INTERNAL_ERROR, reason)
}

/// There is no such session.
pub(crate) fn not_found(reason: impl Display) -> Error {
    refused(ErrorCode::RESOURCE_NOT_FOUND, reason)
}

fn refused(code: ErrorCode, reason: impl Display) -> Error {
    Error::new(code.value(), format!("{code}: {reason}"))
}
