//! What connections of clients have in common, whatever they speak.

use std::convert::Infallible;
use std::future::pending;

use crate::AgentCore;

/// Why the connection of a client is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The client closed its end.
    InputEnded,
    /// What is written no longer reaches the client.
    OutputFailed,
    /// The caller asked for the end, or the services are being shut down.
    Stopped,
}

impl AgentCore {
    /// Takes the grace from what is being ended when somebody asks for the end of a connection that is over by itself already:
    /// whoever does so is impatient. `over` resolves when the connection is over, `stop` when its end is asked for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn hurry_when_stopped(
        &self,
        over: impl Future<Output = Served>,
        stop: impl Future<Output = ()>,
    ) -> Infallible {
        match over.await {
            Served::InputEnded | Served::OutputFailed => {
                stop.await;
                self.hurry();
            }
            Served::Stopped => {}
        }
        pending().await
    }
}
