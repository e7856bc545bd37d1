//! The file of a log: one JSON object per line, the header first.

mod draft;
mod error;
mod load;
mod written;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

pub use error::StoreError;
pub use load::Repair;

use crate::{Event, SessionHeader, SessionId, log::Log};
use load::{Loaded, load};
use written::{Lines, WrittenFile};

/// The file of one session, locked as long as this lives: nobody else who asks gets to write it.
///
/// Nothing is on disk before the first flush. Then the file appears with all that was logged so far, or not at all.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    header: SessionHeader,
    loaded: Log,
    repair: Option<Repair>,
    disk: Disk,
}

/// How sure an event has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It survives the end of the harness, however that comes.
    Written,
    /// It survives the end of the machine, too.
    Synced,
}

#[derive(Debug)]
enum Disk {
    /// There is nothing, or an empty file, which is locked then.
    Nothing {
        empty: Option<File>,
    },
    Written(WrittenFile),
}

impl SessionFile {
    /// A file for a new session.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] when there is a file that is not empty, the directory is missing, or the header cannot be
    /// written down.
    pub fn create(path: impl Into<PathBuf>, header: SessionHeader) -> Result<Self, StoreError> {
        let path = path.into();
        if let Some(cwd) = &header.cwd
            && (!cwd.is_absolute() || cwd.to_str().is_none())
        {
            return Err(StoreError::Cwd { cwd: cwd.clone() });
        }
        let empty = match open_locked(&path) {
            Ok(file) => Some(file),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match &empty {
            Some(file) => expect_empty(&path, file)?,
            None => {
                directory_of(&path)
                    .metadata()
                    .map_err(StoreError::io(&path, "create"))?;
            }
        }
        Ok(Self {
            path,
            header,
            loaded: Log::default(),
            repair: None,
            disk: Disk::Nothing { empty },
        })
    }

    /// The file of a session that goes on.
    ///
    /// A harness that died may have left half an event at the end, and an open turn. The former is left out, the latter
    /// is ended, see [`repair`](Self::repair); both get into the file with the next flush.
    ///
    /// # Errors
    ///
    /// A [`StoreError`] when somebody else has it, or it holds something else than a log.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let mut file = open_locked(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(StoreError::io(&path, "read"))?;
        let Loaded {
            header,
            log,
            good,
            repair,
        } = load(&path, &bytes)?;
        let file = WrittenFile::opened(&path, file, good)?;
        Ok(Self {
            path,
            header,
            loaded: log,
            repair,
            disk: Disk::Written(file),
        })
    }

    /// Like [`open`](Self::open), for a session whose id is known.
    ///
    /// # Errors
    ///
    /// Those of `open`, and [`StoreError::OtherSession`].
    pub fn open_session(path: impl Into<PathBuf>, expected: &SessionId) -> Result<Self, StoreError> {
        let file = Self::open(path)?;
        if file.header.id == *expected {
            return Ok(file);
        }
        Err(StoreError::OtherSession {
            path: file.path.clone(),
            expected: expected.clone(),
            found: file.header.id.clone(),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the session is.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// What was done to a log whose harness died; nothing if it was whole.
    pub fn repair(&self) -> Option<Repair> {
        self.repair
    }

    pub(crate) fn take_loaded(&mut self) -> Log {
        std::mem::take(&mut self.loaded)
    }

    /// The number of the first event that [`write`](Self::write) wants.
    pub(crate) fn next_seq(&self) -> u64 {
        match &self.disk {
            Disk::Nothing { .. } => 0,
            Disk::Written(file) => file.start().events,
        }
    }

    /// Writes all events from [`next_seq`](Self::next_seq) on. After an error, this place is where it was, or before.
    pub(crate) fn write(&mut self, events: &[Event], durability: Durability) -> Result<(), StoreError> {
        let mut lines = Lines {
            bytes: Vec::new(),
            events: events.len() as u64,
        };
        for event in events {
            serde_json::to_writer(&mut lines.bytes, event)
                .map_err(io::Error::from)
                .map_err(StoreError::io(&self.path, "write"))?;
            lines.bytes.push(b'\n');
        }
        match &mut self.disk {
            Disk::Written(file) => file.write(&self.path, &lines)?,
            Disk::Nothing { empty } => {
                let file = WrittenFile::create(&self.path, &self.header, &lines, empty.as_ref())?;
                self.disk = Disk::Written(file);
            }
        }
        match (&mut self.disk, durability) {
            (Disk::Written(file), Durability::Synced) => file.sync(&self.path),
            (Disk::Written(_) | Disk::Nothing { .. }, _) => Ok(()),
        }
    }
}

impl Drop for SessionFile {
    /// Closing alone does not unlock: a process that is being started at this moment holds a copy of every descriptor
    /// until its exec, and the lock belongs to all copies.
    fn drop(&mut self) {
        let file = match &self.disk {
            Disk::Nothing { empty } => empty.as_ref(),
            Disk::Written(file) => Some(file.file()),
        };
        if let Some(file) = file {
            // A refusal means that there is no lock.
            let _ = flock(file, FlockOperation::Unlock);
        }
    }
}

fn open_locked(path: &Path) -> Result<File, StoreError> {
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(StoreError::io(path, "open"))?;
    let metadata = file.metadata().map_err(StoreError::io(path, "open"))?;
    if !metadata.is_file() {
        let path = path.to_owned();
        return Err(StoreError::NotAFile { path });
    }
    lock(path, &file)?;
    Ok(file)
}

fn lock(path: &Path, file: &File) -> Result<(), StoreError> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        Errno::WOULDBLOCK => StoreError::InUse {
            path: path.to_owned(),
        },
        error => StoreError::io(path, "lock")(error.into()),
    })
}

fn expect_empty(path: &Path, file: &File) -> Result<(), StoreError> {
    let metadata = file.metadata().map_err(StoreError::io(path, "open"))?;
    if metadata.len() == 0 {
        return Ok(());
    }
    Err(StoreError::Exists {
        path: path.to_owned(),
    })
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        Some(_) | None => Path::new("."),
    }
}
