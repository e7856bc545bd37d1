//! Why a model gave no answer.

use std::time::Duration;

/// Why a model gave no answer.
///
/// The message says what happened and what helps; it never holds a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// For people.
    pub message: String,
    /// For programs: `AUTH`, `RATE_LIMIT`, `CONTEXT_WINDOW_EXCEEDED`, `INVALID_REQUEST`, `SERVER`, `HTTP_<status>`,
    /// `CONNECT`, `IDLE_TIMEOUT`, `STREAM_CLOSED`, `MALFORMED_RESPONSE`, `NO_ADAPTER`, and what other adapters name.
    pub code: String,
    /// Whether the same request may succeed later.
    pub retry: Retry,
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It will not.
    Never,
    /// It may.
    Later {
        /// Not sooner than this from now, as the provider says.
        after: Option<Duration>,
    },
}

impl ModelError {
    /// A failure that will not go away by itself.
    pub fn lasting(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            code: code.into(),
            retry: Retry::Never,
        }
    }

    /// A failure that may be over soon.
    pub fn passing(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            retry: Retry::Later { after: None },
            ..Self::lasting(code, message)
        }
    }
}

/// Why an adapter was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a model adapter for provider {provider:?} is registered already")]
pub struct DuplicateAdapter {
    /// The name that is taken.
    pub provider: String,
}
