//! The files of a cgroup directory.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::wait::timespec;

/// How deep a command may nest cgroups of its own and still have them looked into.
const DEPTH: u32 = 8;

pub(super) fn read(directory: impl AsFd, name: &str) -> io::Result<String> {
    let mut text = String::new();
    File::from(open_file(directory, name)?).read_to_string(&mut text)?;
    Ok(text)
}

/// To be read, again and again if need be.
pub(super) fn open_file(directory: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// In one call: these files take a value as a whole.
pub(super) fn write(directory: impl AsFd, name: &str, value: &str) -> io::Result<()> {
    let file = rustix::fs::openat(directory, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    File::from(file).write_all(value.as_bytes())
}

/// The number after a key, in a file of such lines.
pub(super) fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == key).then(|| value.trim().parse().ok())?
    })
}

/// Waits until nobody lives in a cgroup or below it, but not for long.
pub(super) fn await_nobody(directory: impl AsFd, patience: Duration) -> io::Result<()> {
    let events = open_file(directory, "cgroup.events")?;
    let until = Instant::now() + patience;
    loop {
        let mut content = [0; 256];
        let count = rustix::io::pread(&events, &mut content, 0)?;
        let text = String::from_utf8_lossy(content.get(..count).unwrap_or_default());
        let left = until.saturating_duration_since(Instant::now());
        if field(&text, "populated") == Some(0) || left.is_zero() {
            return Ok(());
        }
        // A change since the last read is urgent.
        match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&timespec(left))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A directory as a mere place, which cannot be listed.
pub(super) fn place(directory: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// A directory that can be listed and locked.
pub(super) fn open(directory: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(directory, name, flags, Mode::empty())?)
}

/// The names of the directories in a directory.
pub(super) fn directories(directory: impl AsFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(open(directory, ".")?)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() == FileType::Directory && !matches!(name.to_bytes(), b"." | b"..") {
            names.extend(name.to_str().map(str::to_owned));
        }
    }
    Ok(names)
}

/// A cgroup and those below it, which only a command can have made.
pub(super) fn visit(directory: &OwnedFd, each: &mut dyn FnMut(&OwnedFd)) {
    visit_to(DEPTH, directory, each);
}

fn visit_to(depth: u32, directory: &OwnedFd, each: &mut dyn FnMut(&OwnedFd)) {
    each(directory);
    if depth > 0 {
        for name in directories(directory).unwrap_or_default() {
            if let Ok(below) = place(directory, &name) {
                visit_to(depth - 1, &below, each);
            }
        }
    }
}

/// Removes a cgroup in which nobody lives, and those below it. One that is gone was removed.
pub(super) fn remove(directory: impl AsFd, name: &str) -> io::Result<()> {
    remove_to(DEPTH, directory.as_fd(), name)
}

fn remove_to(depth: u32, directory: std::os::fd::BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let removed = || match rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    };
    match removed() {
        // It holds processes, or cgroups.
        Err(Errno::BUSY) if depth > 0 => {}
        result => return Ok(result?),
    }
    let inner = place(directory, name)?;
    for below in directories(&inner)? {
        remove_to(depth - 1, inner.as_fd(), &below)?;
    }
    Ok(removed()?)
}

/// Whether an error says that the cgroup of a file was removed.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

/// Whether a directory has a file that may be written.
pub(super) fn has(directory: impl AsFd, name: &CStr) -> bool {
    rustix::fs::accessat(directory, name, rustix::fs::Access::EXISTS, AtFlags::empty()).is_ok()
}
