//! The file that keeps what memory cannot.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::window::to_index;
use crate::{SpillConfig, SpillDir};

/// A spill file by its name: when the last holder drops it, it is removed, and its share of the directory's room is free
/// again.
#[derive(Debug)]
pub(crate) struct SpillFile {
    path: PathBuf,
    // Keeps the directory until its last file is gone.
    dir: Arc<SpillDir>,
    /// Bytes of the directory's room that this file holds. Only its writer changes it.
    reserved: AtomicU64,
}

impl SpillFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for reading; every read brings its own descriptor, so a finished log keeps none.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Reserves room for the file to grow up to `end`; returns how far it may really grow.
    fn reserve_to(&self, end: u64) -> u64 {
        let reserved = self.reserved.load(Ordering::Relaxed);
        let missing = end.saturating_sub(reserved);
        if missing == 0 {
            return end;
        }
        let reserved = reserved + self.dir.room().reserve(missing);
        self.reserved.store(reserved, Ordering::Relaxed);
        reserved
    }

    /// Gives back what is reserved beyond `end`.
    fn release_beyond(&self, end: u64) {
        let reserved = self.reserved.load(Ordering::Relaxed);
        self.reserved.store(end, Ordering::Relaxed);
        self.dir.room().release(reserved - end);
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                // It still takes its place on the disk, so its share stays taken.
                tracing::warn!(%error, path = %self.path.display(), "a spill file cannot be removed");
            }
            // Only now: who reserves the room next may write at once.
            _ => self.release_beyond(0),
        }
    }
}

/// Reads exactly `range` of a spill file; `None` if it is not all there.
pub(crate) fn read_exact(file: &File, range: &Range<u64>) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).ok()?];
    file.read_exact_at(&mut bytes, range.start).ok()?;
    Some(bytes)
}

/// The writing side. Once it has stopped, for whatever reason, it never writes again.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    state: State,
    max_bytes: u64,
    written: u64,
}

#[derive(Debug)]
enum State {
    /// Memory still holds everything.
    Waiting(Arc<SpillDir>),
    Open {
        file: File,
        name: Arc<SpillFile>,
    },
    Stopped,
}

impl SpillWriter {
    pub(crate) fn new(config: Option<SpillConfig>) -> Self {
        match config {
            Some(SpillConfig { dir, max_bytes }) if max_bytes > 0 => Self {
                state: State::Waiting(dir),
                max_bytes,
                written: 0,
            },
            _ => Self {
                state: State::Stopped,
                max_bytes: 0,
                written: 0,
            },
        }
    }

    /// Bytes of the stream, from byte 0, that are in the file.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting(_))
    }

    /// Whether the file will never grow again.
    pub(crate) fn is_over(&self) -> bool {
        match self.state {
            State::Waiting(_) => false,
            State::Open { .. } => self.written == self.max_bytes,
            State::Stopped => true,
        }
    }

    /// Writes no more, and gives back the room it does not need; what was written stays valid.
    pub(crate) fn stop(&mut self) {
        if let State::Open { name, .. } = std::mem::replace(&mut self.state, State::Stopped) {
            name.release_beyond(self.written);
        }
    }

    /// Creates the file, with room for its first `bytes` as far as there is any, if that has not been tried yet. On an
    /// error, and without any room, spilling stops for good.
    pub(crate) fn start(&mut self, bytes: u64) -> Option<Arc<SpillFile>> {
        let State::Waiting(dir) = std::mem::replace(&mut self.state, State::Stopped) else {
            return None;
        };
        let reserved = dir.room().reserve(bytes.min(self.max_bytes));
        if reserved == 0 && bytes > 0 {
            tracing::warn!("output is not spilled: other spilled output takes all the room");
            return None;
        }
        match create_in(dir.path()) {
            Ok((file, path)) => {
                let reserved = AtomicU64::new(reserved);
                let name = Arc::new(SpillFile { path, dir, reserved });
                self.state = State::Open {
                    file,
                    name: Arc::clone(&name),
                };
                Some(name)
            }
            Err(error) => {
                dir.room().release(reserved);
                tracing::warn!(%error, dir = %dir.path().display(), "output is not spilled: cannot create a file");
                None
            }
        }
    }

    /// Appends what fits under the cap and into the directory's room. On an error what was written stays valid and
    /// spilling stops; it also stops at the first byte without room, since the file would not be a prefix otherwise.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let State::Open { file, name } = &mut self.state else {
            return;
        };
        let wanted = (self.written.saturating_add(bytes.len() as u64)).min(self.max_bytes);
        if wanted == self.written {
            return;
        }
        let granted = name.reserve_to(wanted).min(wanted);
        let failed = write_from(file, bytes, &mut self.written, granted).err();
        if let Some(error) = failed {
            tracing::warn!(%error, kept = self.written, "output is no longer spilled: cannot write");
        } else if granted < wanted {
            tracing::warn!(
                kept = self.written,
                "output is no longer spilled: other spilled output takes the room"
            );
        } else {
            return;
        }
        self.stop();
    }

    /// Closes the file, if one is open. A file that was never needed can still be started later.
    ///
    /// # Errors
    /// When the system reports that earlier writes were lost: nothing in the file can be trusted then.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.finish_with(|file| nix::unistd::close(file).map_err(io::Error::from))
    }

    fn finish_with(&mut self, close: impl FnOnce(File) -> io::Result<()>) -> io::Result<()> {
        match std::mem::replace(&mut self.state, State::Stopped) {
            State::Open { file, .. } => close(file).inspect_err(|_| self.written = 0),
            other => {
                self.state = other;
                Ok(())
            }
        }
    }
}

fn create_in(dir: &Path) -> io::Result<(File, PathBuf)> {
    let created = tempfile::Builder::new()
        .prefix("output-")
        .suffix(".log")
        .rand_bytes(16)
        .tempfile_in(dir)?;
    created.keep().map_err(|kept| kept.error)
}

/// Writes from `bytes` until the file, which has `written` bytes, has `end`.
fn write_from(file: &mut File, bytes: &[u8], written: &mut u64, end: u64) -> io::Result<()> {
    let mut rest = &bytes[..to_index(end - *written)];
    while !rest.is_empty() {
        match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                *written += count as u64;
                rest = &rest[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
