//! The file that keeps what memory cannot.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::{SpillConfig, SpillDir};

/// The name of a spill file: removed when the last holder drops it.
#[derive(Debug)]
pub(crate) struct SpillFile {
    path: tempfile::TempPath,
    // Keeps the directory until its last file is gone.
    _dir: Arc<SpillDir>,
}

impl SpillFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file for reading; every read brings its own descriptor, so a finished log keeps none.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.path)
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
    Open(File),
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

    /// Creates the file if that has not been tried yet. On an error spilling stops for good.
    pub(crate) fn start(&mut self) -> Option<SpillFile> {
        let State::Waiting(dir) = std::mem::replace(&mut self.state, State::Stopped) else {
            return None;
        };
        let created = tempfile::Builder::new()
            .prefix("output-")
            .suffix(".log")
            .rand_bytes(16)
            .tempfile_in(dir.path());
        match created {
            Ok(file) => {
                let (file, path) = file.into_parts();
                self.state = State::Open(file);
                Some(SpillFile { path, _dir: dir })
            }
            Err(error) => {
                tracing::warn!(%error, dir = %dir.path().display(), "output is not spilled: cannot create a file");
                None
            }
        }
    }

    /// Appends what fits under the cap. On an error what was written stays valid and spilling stops.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let State::Open(file) = &mut self.state else {
            return;
        };
        let room = usize::try_from(self.max_bytes - self.written).unwrap_or(usize::MAX);
        let mut rest = &bytes[..bytes.len().min(room)];
        while !rest.is_empty() {
            match file.write(rest) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(written) if written > 0 => {
                    self.written += written as u64;
                    rest = &rest[written..];
                }
                failed => {
                    let error = failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    tracing::warn!(%error, kept = self.written, "output is no longer spilled: cannot write");
                    self.state = State::Stopped;
                    return;
                }
            }
        }
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
            State::Open(file) => close(file).inspect_err(|_| self.written = 0),
            other => {
                self.state = other;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
