//! The private directory of one process for spill files.
//!
//! **Invariants**
//! 1. A directory that is in use holds a file `lock` whose flock its owner holds; the kernel releases it when the
//!    owner dies, however it dies.
//! 2. Only a holder of that flock removes the directory.
//! 3. A new owner takes the flock before it uses the directory and starts over if a sweeper was faster: sweeper and
//!    creator race for one flock, and a lock file without a name (link count 0) tells the creator that it lost.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg},
};

use crate::room::Room;

const PREFIX: &str = "dsh-output-";
const LOCK: &str = "lock";
/// Attempts to create a directory while sweepers of other processes get in the way.
const ATTEMPTS: usize = 16;

/// A directory with mode 0700 that belongs to this process and vanishes with it.
///
/// Share one per process. It is removed when the last handle (every spill file holds one) is dropped; if the process
/// dies first, the next [`SpillDir::create_in`] on the same base removes it.
#[derive(Debug)]
pub struct SpillDir {
    // Declared in drop order: the directory goes while the lock is still held.
    dir: tempfile::TempDir,
    _lock: Flock<File>,
    room: Room,
}

/// Why a spill directory could not be created.
#[derive(Debug, thiserror::Error)]
#[error("cannot create a spill directory in {}: {source} (check that it exists and is writable)", base.display())]
pub struct SpillDirError {
    base: PathBuf,
    source: io::Error,
}

impl SpillDir {
    /// Creates the directory of this process in `base`, which must exist, and removes the directories there whose
    /// owner is dead. All files in it together grow to at most `max_bytes`; what one of them held is free again when
    /// it is removed. Blocks on the file system.
    ///
    /// # Errors
    /// When `base` is missing or not writable, or does not support file locks. A left-over directory that cannot
    /// be removed is logged, not an error.
    pub fn create_in(base: &Path, max_bytes: u64) -> Result<Arc<Self>, SpillDirError> {
        sweep(base);
        let fail = |source| SpillDirError {
            base: base.to_path_buf(),
            source,
        };
        for _ in 0..ATTEMPTS {
            if let Some(dir) = try_create(base, max_bytes).map_err(fail)? {
                return Ok(Arc::new(dir));
            }
        }
        Err(fail(io::Error::other("other processes keep removing it")))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }
}

impl Drop for SpillDir {
    /// By name, as far as that goes: to remove a directory with all that is in it takes descriptors, and a process may
    /// have none left. What was spilled has removed itself by now, and where the lock is gone an empty directory is all
    /// that a sweeper would remove.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.dir.path().join(LOCK));
        let _ = std::fs::remove_dir(self.dir.path());
    }
}

/// One attempt; `None` when a sweeper took the new directory for a dead one.
fn try_create(base: &Path, max_bytes: u64) -> io::Result<Option<SpillDir>> {
    let private = Permissions::from_mode(0o700);
    let dir = tempfile::Builder::new()
        .prefix(PREFIX)
        .rand_bytes(12)
        .permissions(private)
        .tempdir_in(base)?;
    let lock = match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(dir.path().join(LOCK))
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| io::Error::from(errno))?;
    Ok((lock.metadata()?.nlink() > 0).then_some(SpillDir {
        dir,
        _lock: lock,
        room: Room::new(max_bytes),
    }))
}

/// Removes the directories in `base` that nobody holds.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Err(error) = remove_if_dead(&entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "cannot remove a left-over spill directory");
        }
    }
}

/// Does nothing about a directory that goes meanwhile: others sweep, too, and owners go.
fn remove_if_dead(dir: &Path) -> io::Result<()> {
    let metadata = match std::fs::symlink_metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    // In a shared base anybody can plant a name; only a real directory of this user is ours to remove.
    if !metadata.is_dir() || metadata.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(());
    }
    let no_follow = nix::libc::O_NOFOLLOW;
    let lock = match OpenOptions::new()
        .write(true)
        .custom_flags(no_follow)
        .open(dir.join(LOCK))
    {
        // Its owner is between creating the directory and the lock file, or died there. Removing only an empty
        // directory is safe in both cases: a living owner then starts over.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return ignore_missing(std::fs::remove_dir(dir));
        }
        opened => opened?,
    };
    match Flock::lock(lock, FlockArg::LockExclusiveNonblock) {
        Ok(_held) => ignore_missing(std::fs::remove_dir_all(dir)),
        // Its owner lives.
        Err((_, Errno::EWOULDBLOCK)) => Ok(()),
        Err((_, errno)) => Err(errno.into()),
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // The owner created its lock file after we looked.
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
