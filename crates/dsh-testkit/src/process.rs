//! What `/proc` says about processes. Linux only.
//!
//! A process is gone when it has vanished or is a zombie: what is left then is a number that its parent has not read. One
//! whose first thread alone has ended looks like a zombie, and lives.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::eventually;

/// An environment entry that no other test has, to find every process that inherited it.
#[derive(Debug, Clone)]
pub struct Marker {
    value: String,
}

/// The part of `/proc/<pid>/stat` that tests ask for.
struct Stat {
    state: char,
    parent: u32,
    group: u32,
    threads: u32,
}

/// Whether the process has vanished or is a zombie.
pub fn is_gone(pid: u32) -> bool {
    stat(pid).is_none_or(|stat| stat.is_over())
}

/// Waits until the process is gone.
///
/// # Panics
///
/// When it is still there at the deadline of [`eventually`].
///
/// # Cancel safety
///
/// Only waits.
pub async fn gone(pid: u32) {
    eventually(&format!("process {pid} to be gone"), || is_gone(pid)).await;
}

/// The live members of a process group.
pub fn group_members(group: u32) -> Vec<u32> {
    all(|_, stat| stat.group == group && !stat.is_over())
}

/// The children of this process that have ended and were not waited for.
pub fn zombie_children() -> Vec<u32> {
    let me = std::process::id();
    all(|_, stat| stat.parent == me && stat.state == 'Z')
}

/// The open descriptors of this process, each with what it refers to.
pub fn open_fds() -> Vec<(i32, String)> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let found = entries.flatten().filter_map(|entry| {
        let fd = entry.file_name().to_str()?.parse().ok()?;
        let target = fs::read_link(entry.path()).ok()?;
        Some((fd, target.to_string_lossy().into_owned()))
    });
    // The listing itself holds one that is closed when it is over.
    let listing = format!("/proc/{}/fd", std::process::id());
    found.filter(|(_, target)| *target != listing).collect()
}

/// The pid that a script wrote to a file; `None` until it is there.
pub fn read_pid(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

impl Marker {
    /// Not a `DSH_` name and nothing like a credential: the bash executor passes on neither.
    const NAME: &str = "TESTKIT_MARKER";

    /// A value that this machine has not seen.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            value: format!("{}-{}-{count}", std::process::id(), since.as_nanos()),
        }
    }

    /// Name and value, for the environment of the process to be marked.
    pub fn env(&self) -> (String, String) {
        (Self::NAME.to_owned(), self.value.clone())
    }

    /// The live processes that have it.
    pub fn survivors(&self) -> Vec<u32> {
        let entry = format!("{}={}", Self::NAME, self.value).into_bytes();
        all(|pid, stat| {
            let in_thread = |thread: &Path| {
                environment(thread)
                    .split(|byte| *byte == 0)
                    .any(|found| found == entry)
            };
            // The first thread has no environment any more when it alone has ended.
            let threads = || {
                fs::read_dir(format!("/proc/{pid}/task"))
                    .into_iter()
                    .flatten()
                    .flatten()
            };
            !stat.is_over()
                && (in_thread(Path::new(&format!("/proc/{pid}")))
                    || stat.threads > 1 && threads().any(|thread| in_thread(&thread.path())))
        })
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

impl Stat {
    fn is_over(&self) -> bool {
        matches!(self.state, 'Z' | 'X') && self.threads <= 1
    }
}

/// The environment of a process or thread. In the middle of an `exec` there is none, so that is asked for again.
fn environment(process: &Path) -> Vec<u8> {
    const ATTEMPTS: u32 = 4;
    let mut attempts = (0..ATTEMPTS).map(|attempt| {
        if attempt > 0 {
            std::thread::yield_now();
        }
        fs::read(process.join("environ")).unwrap_or_default()
    });
    attempts
        .find(|environment| !environment.is_empty())
        .unwrap_or_default()
}

fn all(wanted: impl Fn(u32, &Stat) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| stat(pid).is_some_and(|stat| wanted(pid, &stat)))
        .collect()
}

fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain parentheses and blanks.
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        threads: fields.nth(14)?.parse().ok()?,
    })
}
