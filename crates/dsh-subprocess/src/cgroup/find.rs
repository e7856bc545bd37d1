//! Where this program may make cgroups.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// What a cgroup of version 2 is made of, as `statfs` tells it.
const MAGIC: u64 = 0x6367_7270;

/// A directory of the cgroup file system, version 2. Whether directories can be made in it is for whoever tries.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    path: PathBuf,
}

impl Base {
    /// The cgroup that this program is in, where the system shows it.
    pub(crate) fn own() -> Option<Base> {
        let mounts = fs::read("/proc/self/mountinfo").ok()?;
        let membership = fs::read("/proc/self/cgroup").ok()?;
        Base::given(own_directory(&mounts, &membership)?).ok()
    }

    /// The directory of this name.
    pub(crate) fn given(path: PathBuf) -> io::Result<Base> {
        // Without a slash at the end, for people.
        let path = std::path::absolute(path)?.components().collect();
        let base = Base { path };
        let found = rustix::fs::fstatfs(base.open()?)?;
        if u64::try_from(found.f_type).ok() != Some(MAGIC) {
            return Err(io::Error::other(
                "not a directory of a cgroup file system, version 2",
            ));
        }
        Ok(base)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.path, flags, Mode::empty())?)
    }
}

/// From `/proc/self/mountinfo` and `/proc/self/cgroup`: the directory that shows the cgroup of this process.
fn own_directory(mounts: &[u8], membership: &[u8]) -> Option<PathBuf> {
    let lines = |text: &[u8]| {
        text.split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    let own = lines(membership)
        .into_iter()
        .find_map(|line| line.strip_prefix(b"0::").map(<[u8]>::to_vec))?;
    let own = PathBuf::from(OsString::from_vec(own));
    lines(mounts).iter().find_map(|line| {
        let Mount { root, place } = cgroup2_mount(line)?;
        let below = own.strip_prefix(root).ok()?;
        // The cgroup is above what this process may see of the hierarchy.
        let seen = below
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        seen.then(|| place.join(below))
    })
}

struct Mount {
    /// Which directory of the file system is shown.
    root: PathBuf,
    /// And where.
    place: PathBuf,
}

/// `31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw`.
fn cgroup2_mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut before = fields.by_ref().take_while(|field| *field != b"-").skip(3);
    let (root, place) = (before.next()?, before.next()?);
    before.for_each(drop);
    (fields.next()? == b"cgroup2").then(|| Mount {
        root: unescaped(root),
        place: unescaped(place),
    })
}

/// Spaces and the like stand as `\040` there.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .split_at_checked(3)
            .filter(|_| *first == b'\\')
            .and_then(|(digits, after)| {
                let digits = std::str::from_utf8(digits).ok()?;
                Some((u8::from_str_radix(digits, 8).ok()?, after))
            });
        let (byte, after) = octal.unwrap_or((*first, after));
        bytes.push(byte);
        rest = after;
    }
    PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))
}

#[cfg(test)]
mod tests;
