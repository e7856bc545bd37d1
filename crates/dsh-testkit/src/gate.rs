//! A door that a test opens.

use tokio::sync::watch;

/// A door that is opened once and stays open. Clones are the same gate.
#[derive(Debug, Clone)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self {
            open: watch::Sender::new(false),
        }
    }

    /// Opens it, for all who wait and all who will come.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until it is open.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn opened(&self) {
        // The sender lives as long as this gate, so the only end is an open gate.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
