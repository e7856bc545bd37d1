//! That a connection is over, and why.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// Why the connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The editor closed its end.
    InputEnded,
    /// What is written no longer reaches the editor.
    OutputFailed,
    /// The caller asked for the end, or the services are being shut down.
    Stopped,
}

/// Whether the connection is over. Cloning gives another handle to the same answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    cause: Arc<OnceLock<Served>>,
    token: CancellationToken,
}

impl Ending {
    /// The connection is over; the first cause stays.
    pub(crate) fn end(&self, cause: Served) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    pub(crate) fn cause(&self) -> Option<Served> {
        self.cause.get().copied()
    }

    /// Cancelled when the connection is over.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}
