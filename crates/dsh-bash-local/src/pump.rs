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

    /// Moves what is in the pipes now, whether the runtime knows of it yet or not: as much as a pipe can hold, and no more,
    /// since somebody may go on writing.
    pub(crate) fn sweep(&mut self) {
        for source in [&mut self.stdout, &mut self.stderr] {
            let is_open = source.as_ref().is_some_and(|source| source.sweep(&self.log));
            if !is_open {
                *source = None;
            }
        }
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
    match SCRATCH.with_borrow_mut(|scratch| from.take(scratch, log)) {
        Ok(count) if count > 0 => count,
        Err(error) if is_for_later(&error) => 0,
        Ok(_) | Err(_) => {
            *source = None;
            0
        }
    }
}

impl Source {
    fn take(&mut self, scratch: &mut Vec<u8>, log: &OutputLog) -> io::Result<usize> {
        scratch.resize(CHUNK, 0);
        let skipped = if self.busy {
            self.skip(log)
        } else {
            Skipped::default()
        };
        let count = match skipped.bytes {
            0 => self.pipe.try_read(scratch)?,
            _ => self.read_on(scratch, skipped.then),
        };
        log.append_after(self.stream, skipped.bytes as u64, &scratch[..count]);
        if count >= PIPE && !self.busy {
            self.busy = true;
            platform::widen(&self.pipe);
        }
        Ok(skipped.bytes + count)
    }

    /// Moves what is there; whether something may follow.
    fn sweep(&self, log: &OutputLog) -> bool {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(CHUNK, 0);
            let mut moved = 0;
            while moved < BUSY_PIPE {
                match rustix::io::read(&self.pipe, &mut scratch[..]) {
                    Ok(0) => return false,
                    Ok(count) => {
                        log.append(self.stream, &scratch[..count]);
                        moved += count;
                    }
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return error == rustix::io::Errno::AGAIN,
                }
            }
            true
        })
    }

    /// Reads so many bytes, which are there, or more. Does not ask the runtime, which need not know yet that there are
    /// any; and in pieces, because a pipe in packet mode gives less at once than it holds.
    fn read_on(&self, scratch: &mut [u8], bytes: usize) -> usize {
        let mut count = 0;
        while count < bytes {
            match rustix::io::read(&self.pipe, &mut scratch[count..]) {
                Ok(more) if more > 0 => count += more,
                Err(rustix::io::Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        count
    }

    /// Throws away what is in the pipe and would be thrown away by the log, without copying it: all but what the log
    /// keeps of it. Most of a long flood goes this way.
    fn skip(&self, log: &OutputLog) -> Skipped {
        let Some(keep) = log.keeps_last().filter(|&keep| keep <= CHUNK) else {
            return Skipped::default();
        };
        let there = platform::available(&self.pipe);
        if there < keep + PIPE {
            return Skipped::default();
        }
        Skipped {
            bytes: platform::discard(&self.pipe, there - keep),
            then: keep,
        }
    }
}

/// What was thrown away, and how much is in the pipe behind it at least.
#[derive(Default)]
struct Skipped {
    bytes: usize,
    then: usize,
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

#[cfg(target_os = "linux")]
mod platform {
    use std::fs::{File, OpenOptions};
    use std::sync::OnceLock;

    use rustix::pipe::SpliceFlags;
    use tokio::net::unix::pipe::Receiver;

    pub(super) fn widen(pipe: &Receiver) {
        // One user's pipes can hold so much together. If that is refused the pipe stays as it is, and works.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, super::BUSY_PIPE);
    }

    /// How much can be read at once.
    pub(super) fn available(pipe: &Receiver) -> usize {
        let bytes = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Drops so many bytes of the pipe; how many it really dropped.
    pub(super) fn discard(pipe: &Receiver, bytes: usize) -> usize {
        static NOWHERE: OnceLock<Option<File>> = OnceLock::new();
        let nowhere = NOWHERE.get_or_init(|| OpenOptions::new().write(true).open("/dev/null").ok());
        let Some(nowhere) = nowhere else { return 0 };
        rustix::pipe::splice(pipe, None, nowhere, None, bytes, SpliceFlags::NONBLOCK).unwrap_or(0)
    }
}

#[cfg(not(target_os = "linux"))]
mod platform {
    use tokio::net::unix::pipe::Receiver;

    pub(super) fn widen(_: &Receiver) {}

    pub(super) fn available(_: &Receiver) -> usize {
        0
    }

    pub(super) fn discard(_: &Receiver, _: usize) -> usize {
        0
    }
}

#[cfg(test)]
mod tests;
