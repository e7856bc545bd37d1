//! Termination signals of this process, as tokens and a number.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dsh_agent_core::AgentCore;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What to do about a terminal that goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hangup {
    /// SIGHUP asks for the end, as SIGTERM does.
    Ends,
    /// Whoever started this process, `nohup` for one, wants it to outlive the terminal.
    Ignored,
}

impl Hangup {
    /// What was inherited. To be asked before anything resets it.
    ///
    /// Where the system does not tell (`/proc/self/status` has the ignored signals as a mask, SIGHUP in its lowest
    /// bit), a hangup ends.
    pub(crate) fn inherited() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        match mask.and_then(|mask| u128::from_str_radix(mask.trim(), 16).ok()) {
            Some(mask) if mask & 1 == 1 => Self::Ignored,
            Some(_) | None => Self::Ends,
        }
    }
}

/// What SIGINT, SIGTERM, SIGHUP and SIGQUIT ask of this process: to end everything it started, then itself.
///
/// The first one cancels [`Signals::stop`]; a second one skips what is left of the grace period.
#[derive(Debug, Clone)]
pub(crate) struct Signals {
    /// Cancelled by the first signal: dispose of everything, then leave.
    pub(crate) stop: CancellationToken,
    hurry: CancellationToken,
    first: Arc<AtomicU8>,
}

impl Signals {
    /// Starts listening. The signals are acted upon while the returned future is polled.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub(crate) fn listen(hangup: Hangup) -> std::io::Result<(Self, impl Future<Output = Infallible>)> {
        let signals = Self {
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            first: Arc::new(AtomicU8::new(0)),
        };
        let sources = Sources {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
        };
        // Handled and not ignored: what is ignored, commands inherit. A write beyond a limit of file sizes then fails, as
        // one on a full disk does, instead of ending this process. The handler stays without its listener.
        drop(signal(SignalKind::from_raw(
            rustix::process::Signal::XFSZ.as_raw(),
        ))?);
        let watcher = signals.clone().watch(sources, hangup);
        Ok((signals, watcher))
    }

    /// Takes the grace from everything that is being ended, once the second signal came. Never returns.
    pub(crate) async fn hurry_when_told(&self, core: &AgentCore) -> Infallible {
        self.hurry.cancelled().await;
        core.hurry();
        pending().await
    }

    /// The exit code that the first signal asks for, 128 and its number; 0 when none came.
    pub(crate) fn exit_code(&self) -> u8 {
        match self.first.load(Ordering::Acquire) {
            0 => 0,
            number => 128 + number,
        }
    }

    async fn watch(self, mut sources: Sources, hangup: Hangup) -> Infallible {
        loop {
            let number = sources.next().await;
            if number == HANGUP && hangup == Hangup::Ignored {
                continue;
            }
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

/// The numbers are the same on every Unix.
const HANGUP: u8 = 1;
const INTERRUPT: u8 = 2;
const QUIT: u8 = 3;
const TERMINATE: u8 = 15;

struct Sources {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    hangup: Signal,
}

impl Sources {
    /// The number of the next signal.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
            _ = self.quit.recv() => QUIT,
            _ = self.hangup.recv() => HANGUP,
        }
    }
}
