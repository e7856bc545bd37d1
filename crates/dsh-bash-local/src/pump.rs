//! Reads both pipes of a process into its log.

use std::cell::RefCell;
use std::io;

use dsh_output::{OutputLog, Stream};
use tokio::net::unix::pipe::Receiver;

/// The most that is read at once.
const CHUNK: usize = 256 * 1024;
/// What a new pipe holds.
const PIPE: usize = 64 * 1024;
/// What the pipe of a busy stream is made to hold: a flood then needs one wake-up where it needed sixteen.
const BUSY_PIPE: usize = 1024 * 1024;
/// How much is moved before others have their turn.
const ALLOWANCE: usize = 1024 * 1024;

thread_local! {
    /// Where a chunk lies between pipe and log. It never does across a point of waiting, so the processes of a thread
    /// share one, and one that is silent needs none.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Both read ends and where they go. Dropping it closes them: whoever still writes gets a broken pipe.
pub(crate) struct Pump {
    stdout: Option<Source>,
    stderr: Option<Source>,
    log: OutputLog,
}

struct Source {
    pipe: Receiver,
    stream: Stream,
    busy: bool,
}

impl Pump {
    pub(crate) fn new(stdout: Receiver, stderr: Receiver, log: OutputLog) -> Self {
        let source = |pipe, stream| Source {
            pipe,
            stream,
            busy: false,
        };
        Self {
            stdout: Some(source(stdout, Stream::Stdout)),
            stderr: Some(source(stderr, Stream::Stderr)),
            log,
        }
    }

    /// Whether a pipe is still open.
    pub(crate) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Gives both pipes up.
    pub(crate) fn close(&mut self) {
        self.stdout = None;
        self.stderr = None;
    }

    /// Waits until there is something, and moves it; returns when nothing more is there, and after a good piece of a
    /// flood. Must not be called when no pipe is open.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: a chunk that was read is in the log before the next point of waiting.
    pub(crate) async fn step(&mut self) {
        tokio::select! {
            () = readable(self.stdout.as_ref()) => {}
            () = readable(self.stderr.as_ref()) => {}
        }
        let mut moved = 0;
        while moved < ALLOWANCE {
            // By turns, so that a flood of one stream does not hold up the other. A pipe that is not known to be
            // readable is not even asked.
            let chunk = take(&mut self.stdout, &self.log) + take(&mut self.stderr, &self.log);
            if chunk == 0 {
                return;
            }
            moved += chunk;
        }
        tokio::task::yield_now().await;
    }
}

/// Waits forever on a closed pipe. An error is left to the read.
async fn readable(source: Option<&Source>) {
    match source {
        Some(source) => drop(source.pipe.readable().await),
        None => std::future::pending().await,
    }
}

/// Moves one chunk, if there is any; returns how large it is. An error of a pipe is its end.
fn take(source: &mut Option<Source>, log: &OutputLog) -> usize {
    let Some(from) = source else { return 0 };
    let read = SCRATCH.with_borrow_mut(|scratch| {
        scratch.resize(CHUNK, 0);
        let count = from.pipe.try_read(scratch)?;
        log.append(from.stream, &scratch[..count]);
        Ok(count)
    });
    match read {
        Ok(count) if count > 0 => {
            if count >= PIPE && !from.busy {
                from.busy = true;
                widen(&from.pipe);
            }
            count
        }
        Err(error) if is_for_later(&error) => 0,
        Ok(_) | Err(_) => {
            *source = None;
            0
        }
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(target_os = "linux")]
fn widen(pipe: &Receiver) {
    // One user's pipes can hold so much together. If that is refused the pipe stays as it is, and works.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, BUSY_PIPE);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &Receiver) {}
