//! Termination signals of this process, as a token and a number.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dsh_agent_core::AgentCore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What SIGINT and SIGTERM ask of this process.
///
/// The first one cancels [`Signals::stop`]; a second one cancels [`Signals::hurry`], which skips what is left of
/// the grace period.
#[derive(Debug, Clone)]
pub(crate) struct Signals {
    /// Cancelled by the first signal: dispose of everything, then leave.
    pub(crate) stop: CancellationToken,
    /// Cancelled by the second signal: dispose without grace.
    pub(crate) hurry: CancellationToken,
    first: Arc<AtomicU8>,
}

impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub(crate) fn listen() -> std::io::Result<(Self, impl Future<Output = Infallible>)> {
        let signals = Self {
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            first: Arc::new(AtomicU8::new(0)),
        };
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        let watcher = signals.clone().watch(interrupt, terminate);
        Ok((signals, watcher))
    }

    /// Takes the grace from everything that is being ended, once the second signal came. Never returns.
    pub(crate) async fn hurry_when_told(&self, core: &AgentCore) -> Infallible {
        self.hurry.cancelled().await;
        core.hurry();
        pending().await
    }

    /// The exit code that the first signal asks for: 130 or 143, or 0 when none came.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.first.load(Ordering::Acquire) {
            0 => 0,
            number => 128 + number,
        }
    }

    async fn watch(self, mut interrupt: Signal, mut terminate: Signal) -> Infallible {
        loop {
            let number = tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
            };
            if self
                .first
                .compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                self.stop.cancel();
            } else {
                self.hurry.cancel();
            }
        }
    }
}
