//! Refusals and faults.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use dsh_agent::BoxError;
use dsh_scope::ScopeClosed;

use crate::{DepthError, SchemaError};

/// Why a provider is not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Another one has its name.
    #[error("a subagent provider named \"{0}\" is already registered")]
    Duplicate(String),
    /// A listener did not want it.
    #[error(transparent)]
    Refused(BoxError),
    /// The scope it was to live on is closing.
    #[error(transparent)]
    ScopeClosed(#[from] ScopeClosed<()>),
}

/// Why a child was not started. Nothing of it is left, unless the [failure](StartFailure::rollback) says so.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is nobody of this name.
    #[error("no subagent provider registered for \"{0}\"")]
    NoProvider(String),
    /// The provider cannot do what is asked for.
    #[error("subagent provider \"{provider}\" does not support the \"{capability}\" capability")]
    UnsupportedCapability {
        /// Its name.
        provider: String,
        /// What it cannot do.
        capability: &'static str,
    },
    /// The limit of depth is none.
    #[error(transparent)]
    Depth(#[from] DepthError),
    /// The schema of the result is none that can be held.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The provider could not start it.
    #[error(transparent)]
    Provider(#[from] StartFailure),
}

/// Why a provider has started no child.
///
/// Its text is shown to models; what they must not see belongs into the source, which only the log of the program shows.
#[derive(Debug, Clone)]
pub struct StartFailure {
    message: String,
    rollback: Option<String>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Why a run has no result, or could not be released.
///
/// Its text is shown to models, see [`StartFailure`].
#[derive(Debug, Clone)]
pub struct RunFault {
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl RegisterError {
    /// The name of it for programs.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Duplicate(_) => Some("DUPLICATE_PROVIDER"),
            Self::Refused(_) | Self::ScopeClosed(_) => None,
        }
    }
}

impl StartError {
    /// The name of it for programs.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::NoProvider(_) => Some("NO_PROVIDER"),
            Self::UnsupportedCapability { .. } => Some("UNSUPPORTED_CAPABILITY"),
            Self::Depth(_) | Self::Schema(_) | Self::Provider(_) => None,
        }
    }
}

impl StartFailure {
    /// A failure that left nothing behind.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            rollback: None,
            source: None,
        }
    }

    /// And what had been made for the child could not be taken down: never a clean end, whoever asked for it.
    #[must_use]
    pub fn with_rollback(mut self, failure: impl Into<String>) -> Self {
        self.rollback = Some(failure.into());
        self
    }

    /// What is behind it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Why what had been made for the child could not be taken down.
    pub fn rollback(&self) -> Option<&str> {
        self.rollback.as_deref()
    }
}

impl RunFault {
    /// A fault with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// What is behind it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.rollback {
            Some(rollback) => write!(f, "; {rollback}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for RunFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StartFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl Error for RunFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
