//! Termination signals of this process, as tokens and a number.
//!
//! They are caught from the first lines of `main` on, before there is a runtime or a configuration, and wait in pipes until
//! somebody listens: whenever one comes, the exit code and the order of the end are the same. What comes before `main`
//! (while the program is loaded, and while it looks at how it was started) ends the process by the signal itself; nothing
//! was begun by then.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::unix::net::UnixStream as Pipe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use dsh_agent_core::AgentCore;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::low_level::pipe;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
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

/// The signals that ask for the end, caught. Each has a pipe with a byte for every time it came.
#[derive(Debug)]
pub(crate) struct Caught(Vec<(u8, Pipe)>);

impl Caught {
    /// Catches SIGINT, SIGTERM, SIGQUIT and SIGHUP from now on. Needs no runtime.
    ///
    /// Nothing is ignored: what is ignored, commands inherit.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub(crate) fn new(hangup: Hangup) -> io::Result<Self> {
        let unheard = || Arc::new(AtomicBool::new(false));
        let mut ends = vec![SIGINT, SIGTERM, SIGQUIT];
        match hangup {
            Hangup::Ends => ends.push(SIGHUP),
            Hangup::Ignored => drop(flag::register(SIGHUP, unheard())?),
        }
        // A write beyond a limit of file sizes fails, as one on a full disk does, instead of ending this process.
        flag::register(SIGXFSZ, unheard())?;
        let caught = ends.into_iter().map(|signal| {
            let (theirs, ours) = Pipe::pair()?;
            pipe::register(signal, theirs)?;
            Ok((u8::try_from(signal).map_err(io::Error::other)?, ours))
        });
        caught.collect::<io::Result<_>>().map(Self)
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
    /// Starts listening, to what has come already, too. The signals are acted upon while the returned future is polled.
    ///
    /// # Errors
    ///
    /// When the runtime cannot wait for the pipes.
    ///
    /// # Panics
    ///
    /// Outside a runtime.
    pub(crate) fn listen(caught: Caught) -> io::Result<(Self, impl Future<Output = Infallible>)> {
        let signals = Self {
            stop: CancellationToken::new(),
            hurry: CancellationToken::new(),
            first: Arc::new(AtomicU8::new(0)),
        };
        let sources = caught.0.into_iter().map(|(number, pipe)| {
            pipe.set_nonblocking(true)?;
            Ok(signals.clone().watch(number, UnixStream::from_std(pipe)?))
        });
        let sources: Vec<_> = sources.collect::<io::Result<_>>()?;
        let watcher = async {
            futures_util::future::join_all(sources).await;
            pending().await
        };
        Ok((signals, watcher))
    }

    /// Takes the grace from everything that is being ended, once the second signal came. Never returns.
    pub(crate) async fn hurry_when_told(&self, core: &AgentCore) -> Infallible {
        self.hurry.cancelled().await;
        core.hurry();
        pending().await
    }

    /// The exit code that the first signal asks for, 128 and its number; nothing when none came.
    pub(crate) fn exit_code(&self) -> Option<u8> {
        match self.first.load(Ordering::Acquire) {
            0 => None,
            number => Some(128 + number),
        }
    }

    /// Acts upon one signal, as often as it comes.
    async fn watch(self, number: u8, mut pipe: UnixStream) {
        // The other end lives as long as the handler: for ever.
        while pipe.read_u8().await.is_ok() {
            let first = (self.first).compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
            match first {
                Ok(_) => self.stop.cancel(),
                Err(_) => self.hurry.cancel(),
            }
        }
    }
}
