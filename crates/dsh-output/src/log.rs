//! The log of one process.
//!
//! **Invariants**
//! 1. `writer` is taken by everything that changes the log (append, close, starting the file), so bytes enter the
//!    file and memory in the same order. `core` is what readers take; it is never held during file access.
//! 2. Lock order: `writer`, then `core`. No foreign code runs under either: wakers are called after both are free.
//! 3. The file is started only while memory still holds the whole stream, and begins with it. So the file is always
//!    a prefix of the stream, and its first `spilled` bytes are equal to the first `spilled` bytes of the log.
//! 4. A reader copies what it needs from memory together with `spilled` in one step; bytes below `spilled` never
//!    change or go away (except by a disk error, which the reader sees as missing bytes).

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::runs::Runs;
use crate::spill::{SpillFile, SpillWriter};
use crate::window::Window;
use crate::{LogReader, OutputConfig, Rendering};

/// Where a byte came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The output of one process: both streams in the order of arrival, with absolute byte offsets over the merged
/// stream.
///
/// A cheap handle; the spill file is removed when the last one is dropped.
#[derive(Clone)]
pub struct OutputLog {
    shared: Arc<Shared>,
}

struct Shared {
    writer: Mutex<SpillWriter>,
    core: Mutex<Core>,
    /// Marked as changed by every append and close; the value says whether the log is closed.
    changes: watch::Sender<bool>,
}

pub(crate) struct Core {
    pub(crate) window: Window,
    pub(crate) runs: Runs,
    pub(crate) file: Option<Arc<SpillFile>>,
    /// Bytes of the stream, from byte 0, that can be read from the file.
    pub(crate) spilled: u64,
    pub(crate) closed: bool,
}

impl OutputLog {
    /// An empty log.
    pub fn new(config: OutputConfig) -> Self {
        let core = Core {
            window: Window::new(config.memory_bytes),
            runs: Runs::default(),
            file: None,
            spilled: 0,
            closed: false,
        };
        let (changes, _) = watch::channel(false);
        let writer = Mutex::new(SpillWriter::new(config.spill));
        Self {
            shared: Arc::new(Shared {
                writer,
                core: Mutex::new(core),
                changes,
            }),
        }
    }

    /// Adds bytes as they arrived. Once the log has outgrown its memory this writes them to the spill file before it
    /// returns: small writes into the page cache, on the caller's thread. Readers are not blocked by that, only
    /// other appends are. Bytes that come after [`close`](Self::close) are dropped.
    pub fn append(&self, stream: Stream, bytes: &[u8]) {
        self.append_after(stream, 0, bytes);
    }

    /// As [`append`](Self::append), after `skipped` bytes that nobody looked at. They count as output, and are missing.
    /// Skip only what [`keeps_last`](Self::keeps_last) allows: from the first skipped byte on the log keeps its tail
    /// alone.
    pub fn append_after(&self, stream: Stream, skipped: u64, bytes: &[u8]) {
        let count = skipped.saturating_add(bytes.len() as u64);
        if count == 0 {
            return;
        }
        let mut writer = self.writer();
        let (closed, fits) = {
            let core = self.core();
            (core.closed, core.window.fits(count))
        };
        if closed {
            tracing::debug!(bytes = count, "output after the end of its log is dropped");
            return;
        }
        if !fits {
            self.start_file(&mut writer, count);
        }
        if skipped > 0 {
            writer.stop();
        }
        writer.write(bytes);
        let mut core = self.core();
        core.window.skip(skipped);
        core.window.append(bytes);
        core.runs.push(stream, count);
        core.spilled = writer.written();
        drop(core);
        drop(writer);
        self.shared.changes.send_modify(|_| {});
    }

    /// How many bytes are kept of what is yet to come, counted from its end; `None` while more than that is kept,
    /// because the head or the file still grows. Never `None` again once it was not.
    pub fn keeps_last(&self) -> Option<usize> {
        let is_over = self.writer().is_over();
        let core = self.core();
        is_over.then(|| core.window.keeps_last()).flatten()
    }

    /// Says that nothing more will come: unfinished characters are shown, and waiters wake. Closing twice is fine.
    pub fn close(&self) {
        let mut writer = self.writer();
        let mut core = self.core();
        core.closed = true;
        core.window.shrink();
        drop(core);
        self.finish_file(&mut writer);
        drop(writer);
        self.shared.changes.send_replace(true);
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.core().closed
    }

    /// Bytes ever appended; the offset at which the next byte will lie.
    pub fn len(&self) -> u64 {
        self.core().window.len()
    }

    /// Whether nothing was ever appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The spill file, if there is one. Byte N of it is byte N of the log.
    pub fn spill_path(&self) -> Option<PathBuf> {
        self.core().file.as_ref().map(|file| file.path().to_path_buf())
    }

    /// The log as a source of text for the model.
    pub fn reader(&self, rendering: Rendering) -> LogReader {
        LogReader::new(self.clone(), rendering)
    }

    /// Completes at the first append or close after this call, or at once if the log is closed. To wait for a
    /// condition, call this first, then check the condition, then await.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut changes = self.shared.changes.subscribe();
        let closed = *changes.borrow_and_update();
        async move {
            if !closed {
                // An error means that the last handle is gone, so nothing more comes.
                let _ = changes.changed().await;
            }
        }
    }

    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.shared.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that what a reply skips is in the file, as far as it can be.
    pub(crate) fn keep_for_later(&self, until: u64) {
        if self.core().spilled >= until {
            return;
        }
        let mut writer = self.writer();
        self.start_file(&mut writer, 0);
        if self.is_closed() {
            self.finish_file(&mut writer);
        }
    }

    fn writer(&self) -> MutexGuard<'_, SpillWriter> {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the file with all that memory holds, and room for `more` bytes. Does nothing once that was tried.
    fn start_file(&self, writer: &mut SpillWriter, more: u64) {
        if !writer.is_waiting() {
            return;
        }
        let (len, so_far) = {
            let core = self.core();
            (core.window.len(), core.window.read(&(0..u64::MAX)))
        };
        if let Some(file) = writer.start(len.saturating_add(more)) {
            for (_, bytes) in so_far {
                writer.write(&bytes);
            }
            let mut core = self.core();
            core.file = Some(file);
            core.spilled = writer.written();
        }
    }

    /// Closes the file for writing; a file whose writes were lost is withheld.
    fn finish_file(&self, writer: &mut SpillWriter) {
        let finished = writer.finish();
        let mut core = self.core();
        core.spilled = writer.written();
        if let Err(error) = finished {
            tracing::warn!(%error, "the spill file is withheld: it could not be closed");
            core.file = None;
        }
    }
}

/// Never the output itself: it may hold secrets and does not belong into a log line.
impl fmt::Debug for OutputLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.core();
        f.debug_struct("OutputLog")
            .field("len", &core.window.len())
            .field("spilled", &core.spilled)
            .field("closed", &core.closed)
            .finish_non_exhaustive()
    }
}
