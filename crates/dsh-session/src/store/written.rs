//! A file that is there, and how it comes to be there.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    StoreError, directory_of,
    draft::{Draft, Place},
    expect_empty,
    load::header_line,
    lock,
};
use crate::SessionHeader;

/// A place between two lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) bytes: u64,
    /// How many events are before it.
    pub(super) events: u64,
}

/// Lines that a file is to get.
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    pub(super) events: u64,
}

/// A file with a header.
#[derive(Debug)]
pub(super) struct WrittenFile {
    file: File,
    /// Up to here the file is what the log says.
    written: Position,
    /// Up to here that is on disk.
    synced: Position,
    /// Whether syncing has failed. The system may have forgotten what was written since it last succeeded, so that is
    /// written again.
    sync_failed: bool,
    /// The directory that has to be synced for the file to be found.
    unsynced_directory: Option<PathBuf>,
}

impl WrittenFile {
    /// A file that was good up to there when it was read.
    ///
    /// # Errors
    ///
    /// When it cannot be synced: what is shown as having happened stays so.
    pub(super) fn opened(path: &Path, file: File, good: Position) -> Result<Self, StoreError> {
        file.sync_data().map_err(StoreError::io(path, "sync"))?;
        Ok(Self {
            file,
            written: good,
            synced: good,
            sync_failed: false,
            unsynced_directory: None,
        })
    }

    /// Writes a file, then gives it its name if nobody else has it. `empty` is the locked empty file that may be
    /// replaced.
    pub(super) fn create(
        path: &Path,
        header: &SessionHeader,
        lines: &Lines,
        empty: Option<&File>,
    ) -> Result<Self, StoreError> {
        let failed = || StoreError::io(path, "create");
        let header = header_line(header).map_err(io::Error::from).map_err(failed())?;
        let directory = directory_of(path);
        let draft = Draft::new(directory).map_err(failed())?;
        let mut file = draft.file();
        file.write_all(&header)
            .and_then(|()| file.write_all(&lines.bytes))
            .and_then(|()| file.sync_all())
            .map_err(failed())?;
        lock(path, file)?;
        let place = match empty {
            Some(empty) => {
                expect_empty(path, empty)?;
                Place::Empty
            }
            None => Place::Free,
        };
        let file = draft.put(path, place).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Exists {
                path: path.to_owned(),
            },
            _ => failed()(error),
        })?;
        let end = Position {
            bytes: (header.len() + lines.bytes.len()) as u64,
            events: lines.events,
        };
        Ok(Self {
            file,
            written: end,
            synced: end,
            sync_failed: false,
            unsynced_directory: Some(directory.to_owned()),
        })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Where the next lines go.
    pub(super) fn start(&self) -> Position {
        if self.sync_failed {
            self.synced
        } else {
            self.written
        }
    }

    /// Writes lines at [`start`](Self::start).
    pub(super) fn write(&mut self, path: &Path, lines: &Lines) -> Result<(), StoreError> {
        self.expect_ours(path)?;
        let start = self.start();
        if let Err(error) = self.file.write_all_at(&lines.bytes, start.bytes) {
            // Tried once more before the next write; here it leaves a whole file to those who look at it meanwhile.
            let _ = self.trim();
            return Err(StoreError::io(path, "write")(error));
        }
        self.written = Position {
            bytes: start.bytes + lines.bytes.len() as u64,
            events: start.events + lines.events,
        };
        Ok(())
    }

    /// Gets what was written to the disk.
    pub(super) fn sync(&mut self, path: &Path) -> Result<(), StoreError> {
        if let Some(directory) = &self.unsynced_directory {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(StoreError::io(path, "sync"))?;
            self.unsynced_directory = None;
        }
        if self.synced == self.written && !self.sync_failed {
            return Ok(());
        }
        let synced = self.file.sync_data();
        self.sync_failed = synced.is_err();
        synced.map_err(StoreError::io(path, "sync"))?;
        self.synced = self.written;
        Ok(())
    }

    /// Refuses a file that was changed under our hands; cuts off half a line of a write that failed, or of a harness
    /// that died.
    fn expect_ours(&self, path: &Path) -> Result<(), StoreError> {
        let metadata = self.file.metadata().map_err(StoreError::io(path, "write"))?;
        let meddled = |how| {
            let path = path.to_owned();
            Err(StoreError::Meddled { path, how })
        };
        if metadata.nlink() == 0 {
            return meddled("removed");
        }
        if metadata.len() < self.written.bytes {
            return meddled("shortened");
        }
        if metadata.len() > self.written.bytes {
            self.trim().map_err(StoreError::io(path, "write"))?;
        }
        Ok(())
    }

    fn trim(&self) -> io::Result<()> {
        self.file.set_len(self.written.bytes)
    }
}

#[cfg(test)]
mod tests;
