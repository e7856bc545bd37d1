//! The file of a log: one JSON object per line, the header first.

mod error;
mod load;

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

pub use error::StoreError;
pub use load::Repair;

use crate::{Enclosure, Event, SessionHeader, SessionId};
use load::{Loaded, header_line, load};

/// The file of one session, locked as long as this lives: nobody else who asks gets to write it.
///
/// Nothing is on disk before the first flush. Then the file appears with all that was logged so far, or not at all.
#[derive(Debug)]
pub struct SessionFile {
    path: PathBuf,
    header: SessionHeader,
    loaded: (Vec<Event>, Enclosure),
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

/// A place between two lines of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    bytes: u64,
    /// How many events are before it.
    events: u64,
}

#[derive(Debug)]
enum Disk {
    /// There is nothing, or an empty file, which is locked then.
    Unborn {
        empty: Option<File>,
    },
    Born(Log),
}

/// A file with a header.
#[derive(Debug)]
struct Log {
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
            loaded: Default::default(),
            repair: None,
            disk: Disk::Unborn { empty },
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
            events,
            enclosure,
            good,
            repair,
        } = load(&path, &bytes)?;
        // What is shown as having happened stays so.
        file.sync_data().map_err(StoreError::io(&path, "sync"))?;
        let log = Log {
            file,
            written: good,
            synced: good,
            sync_failed: false,
            unsynced_directory: None,
        };
        Ok(Self {
            path,
            header,
            loaded: (events, enclosure),
            repair,
            disk: Disk::Born(log),
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
            path: file.path,
            expected: expected.clone(),
            found: file.header.id,
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

    pub(crate) fn take_loaded(&mut self) -> (Vec<Event>, Enclosure) {
        std::mem::take(&mut self.loaded)
    }

    /// The number of the first event that [`write`](Self::write) wants.
    pub(crate) fn next_seq(&self) -> u64 {
        match &self.disk {
            Disk::Unborn { .. } => 0,
            Disk::Born(log) => log.start().events,
        }
    }

    /// Writes all events from [`next_seq`](Self::next_seq) on. After an error, this place is where it was, or before.
    pub(crate) fn write(&mut self, events: &[Event], durability: Durability) -> Result<(), StoreError> {
        let mut lines = Vec::new();
        for event in events {
            serde_json::to_writer(&mut lines, event)
                .map_err(io::Error::from)
                .map_err(StoreError::io(&self.path, "write"))?;
            lines.push(b'\n');
        }
        match &mut self.disk {
            Disk::Born(log) => log.write(&self.path, &lines, events.len())?,
            Disk::Unborn { empty } => {
                let log = give_birth(&self.path, &self.header, &lines, events.len(), empty.as_ref())?;
                self.disk = Disk::Born(log);
            }
        }
        match (&mut self.disk, durability) {
            (Disk::Born(log), Durability::Synced) => log.sync(&self.path),
            (Disk::Born(_) | Disk::Unborn { .. }, _) => Ok(()),
        }
    }
}

impl Log {
    fn start(&self) -> Position {
        if self.sync_failed {
            self.synced
        } else {
            self.written
        }
    }

    fn write(&mut self, path: &Path, lines: &[u8], events: usize) -> Result<(), StoreError> {
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
            // Half a line of a write that failed, or of a harness that died.
            self.trim().map_err(StoreError::io(path, "write"))?;
        }
        let start = self.start();
        if let Err(error) = self.file.write_all_at(lines, start.bytes) {
            // Tried once more before the next write; here it leaves a whole file to those who look at it meanwhile.
            let _ = self.trim();
            return Err(StoreError::io(path, "write")(error));
        }
        self.written = Position {
            bytes: start.bytes + lines.len() as u64,
            events: start.events + events as u64,
        };
        Ok(())
    }

    fn trim(&self) -> io::Result<()> {
        self.file.set_len(self.written.bytes)
    }

    fn sync(&mut self, path: &Path) -> Result<(), StoreError> {
        if let Some(directory) = &self.unsynced_directory {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(StoreError::io(path, "sync"))?;
            self.unsynced_directory = None;
        }
        let synced = self.file.sync_data();
        self.sync_failed = synced.is_err();
        synced.map_err(StoreError::io(path, "sync"))?;
        self.synced = self.written;
        Ok(())
    }
}

/// Writes the file under another name, then gives it its own if nobody else has it.
fn give_birth(
    path: &Path,
    header: &SessionHeader,
    lines: &[u8],
    events: usize,
    empty: Option<&File>,
) -> Result<Log, StoreError> {
    let failed = || StoreError::io(path, "create");
    let header = header_line(header).map_err(io::Error::from).map_err(failed())?;
    let directory = directory_of(path);
    let mut temporary = tempfile::Builder::new()
        .prefix(".session-")
        .tempfile_in(directory)
        .map_err(failed())?;
    temporary
        .write_all(&header)
        .and_then(|()| temporary.write_all(lines))
        .and_then(|()| temporary.as_file().sync_all())
        .map_err(failed())?;
    lock(path, temporary.as_file())?;
    let placed = match empty {
        Some(empty) => {
            expect_empty(path, empty)?;
            temporary.persist(path)
        }
        None => temporary.persist_noclobber(path),
    };
    let file = placed.map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => StoreError::Exists {
            path: path.to_owned(),
        },
        _ => failed()(refused.error),
    })?;
    let end = Position {
        bytes: (header.len() + lines.len()) as u64,
        events: events as u64,
    };
    Ok(Log {
        file,
        written: end,
        synced: end,
        sync_failed: false,
        unsynced_directory: Some(directory.to_owned()),
    })
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
