//! A file that is written before it is where it belongs.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use tempfile::{Builder, NamedTempFile, PersistError};

/// What a name begins with that is not the file's own.
const PREFIX: &str = ".session-";

/// A file that is written before it is where it belongs.
pub(super) enum Draft {
    /// Nobody sees it, and a writer that is killed leaves nothing of it. Not every file system has such.
    Nameless(File, PathBuf),
    /// Under a name of its own; a writer that is killed leaves it.
    Named(NamedTempFile),
}

/// What is where the file belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Free,
    /// An empty file, which is replaced.
    Empty,
}

impl Draft {
    /// An empty one, for a place in this directory.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        match linux::nameless(directory) {
            Some(file) => Ok(Self::Nameless(file, directory.to_owned())),
            None => builder().tempfile_in(directory).map(Self::Named),
        }
    }

    pub(super) fn file(&self) -> &File {
        match self {
            Self::Nameless(file, _) => file,
            Self::Named(file) => file.as_file(),
        }
    }

    /// Puts it where it belongs, whole or not at all.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` when a free place is free no more.
    pub(super) fn put(self, path: &Path, place: Place) -> io::Result<File> {
        match (self, place) {
            (Self::Nameless(file, _), Place::Free) => {
                linux::link(&file, path)?;
                Ok(file)
            }
            (Self::Nameless(file, directory), Place::Empty) => {
                // Only a rename replaces, and only what has a name can be renamed.
                let named = builder().make_in(directory, |path| linux::link(&file, path))?;
                named.persist(path).map_err(refused)?;
                Ok(file)
            }
            (Self::Named(file), Place::Free) => file.persist_noclobber(path).map_err(refused),
            (Self::Named(file), Place::Empty) => file.persist(path).map_err(refused),
        }
    }
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    builder
}

fn refused<F>(error: PersistError<F>) -> io::Error {
    error.error
}

/// What only Linux has.
#[cfg(target_os = "linux")]
mod linux {
    use std::{fs::File, io, os::fd::AsRawFd, path::Path};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    /// Where the descriptors of this process have names.
    const DESCRIPTORS: &str = "/proc/self/fd";

    pub(super) fn nameless(directory: &Path) -> Option<File> {
        if !Path::new(DESCRIPTORS).is_dir() {
            return None;
        }
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = open(directory, flags, Mode::RUSR | Mode::WUSR);
        file.ok().map(File::from)
    }

    /// Gives a nameless file its name.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        let source = format!("{DESCRIPTORS}/{}", file.as_raw_fd());
        Ok(linkat(CWD, source, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    use std::{fs::File, io, path::Path};

    pub(super) fn nameless(_directory: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
