//! Refusals.

use std::{fmt, sync::Arc};

/// A closing or closed scope refused a registration, and hands back what it was given.
pub struct ScopeClosed<D> {
    /// The disposer or task that was not taken. Nothing of it has run.
    pub rejected: D,
    scope: Arc<str>,
}

/// Why [`Scope::close`](crate::Scope::close) did not wait for the end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloseError {
    /// The caller runs inside work that this scope waits for: waiting for it here would never end.
    #[error("cannot close scope \"{scope}\" from inside work it waits for; close it from outside")]
    FromWithin {
        /// Name of the scope.
        scope: Arc<str>,
    },
    /// The runtime that closed the scope was shut down in the middle.
    #[error("the runtime ended while scope \"{scope}\" was being closed")]
    Interrupted {
        /// Name of the scope.
        scope: Arc<str>,
    },
}

impl<D> ScopeClosed<D> {
    /// The refusal alone; what was handed back is dropped.
    pub fn discard(self) -> ScopeClosed<()> {
        ScopeClosed {
            rejected: (),
            scope: self.scope,
        }
    }

    pub(crate) fn new(scope: &Arc<str>, rejected: D) -> Self {
        Self {
            rejected,
            scope: scope.clone(),
        }
    }
}

impl<D> fmt::Display for ScopeClosed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot create effect on inactive scope \"{}\"", self.scope)
    }
}

impl<D> fmt::Debug for ScopeClosed<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeClosed")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl<D> std::error::Error for ScopeClosed<D> {}
