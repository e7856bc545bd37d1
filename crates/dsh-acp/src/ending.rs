//! That a connection is over, and why.

use std::sync::{Arc, OnceLock};

use dsh_agent_core::Served;
use tokio_util::sync::CancellationToken;

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

    /// Resolves when the connection is over, with the cause.
    pub(crate) async fn over(self) -> Served {
        self.token.cancelled().await;
        // Set before the token is cancelled.
        self.cause().unwrap_or(Served::Stopped)
    }

    pub(crate) fn cause(&self) -> Option<Served> {
        self.cause.get().copied()
    }

    /// Cancelled when the connection is over.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}
