//! Who is in a tree: a walk down from its root.
//!
//! A walk may miss members, because they fork and are re-parented meanwhile; it proves nothing. But whoever it
//! shows is *proven* a member: its number cannot have gone to a stranger. The order that guarantees this:
//! open a descriptor for the process, read whose child it is, see by the descriptors that neither it nor its
//! parent had exited by then. A parent that had not exited still had its number, so the child was its child.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use nix::unistd::getpgid;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use crate::platform::{Status, status};
use crate::wait::is_readable;

/// A member that had not exited when it was met.
pub(crate) struct Seen {
    pub(crate) pid: Pid,
    /// What was read of it.
    pub(crate) status: Status,
    process: OwnedFd,
}

impl Seen {
    /// Reaches this very process or, if it is gone, nobody.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.process, signal);
    }

    fn child_of(pid: Pid, parent: Pid) -> Option<Seen> {
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let status = status(pid)?;
        let is_child = status.parent == parent.as_raw_nonzero().get();
        (is_child && !has_exited(&process)).then_some(Seen { pid, status, process })
    }
}

/// Calls `visit` for each member below this process, children before their parent. The children of this process
/// that `spared` names are left out, with all below them.
///
/// Returns who had exited when it was met. What was below it went elsewhere, perhaps to where this walk had been before;
/// another walk that meets no others who have exited has missed nobody for this reason.
pub(crate) fn walk(spared: &dyn Fn(Pid) -> bool, visit: &mut dyn FnMut(Seen)) -> HashSet<Pid> {
    let mut exited = HashSet::new();
    for pid in own_children() {
        if !spared(pid) {
            descend(pid, getpid(), &|| true, visit, &mut exited);
        }
    }
    exited
}

/// As [`walk`], below another process. Shows nobody once that has exited, whoever has its number then.
pub(crate) fn walk_below(root: Pid, process: &OwnedFd, visit: &mut dyn FnMut(Seen)) {
    for pid in children(root) {
        descend(pid, root, &|| !has_exited(process), visit, &mut HashSet::new());
    }
}

/// The list of this process's own children, open since it began to guard.
static OWN_LIST: Mutex<Option<File>> = Mutex::new(None);

/// Keeps the list of this process's own children open. A command can take every further descriptor from its guard, or put
/// something else in the place of `/proc`: whom the guard has to kill it still sees then, since whoever loses its parent is
/// its child.
///
/// To be called by the only thread of a process, after it has closed what it does not need.
pub(crate) fn keep_own_list() {
    let mut list = OWN_LIST.lock().unwrap_or_else(PoisonError::into_inner);
    // A fork has that of its parent, whose descriptor is closed, and maybe somebody else's by now.
    std::mem::forget(list.take());
    *list = File::open("/proc/thread-self/children").ok();
}

/// The children of this process, zombies too.
pub(crate) fn own_children() -> Vec<Pid> {
    let mut pids = children(getpid());
    if pids.is_empty() {
        pids = kept_children();
    }
    pids
}

fn kept_children() -> Vec<Pid> {
    let list = OWN_LIST.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(list) = &*list else {
        return Vec::new();
    };
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = list.read_at(&mut piece, text.len() as u64) {
        text.extend_from_slice(&piece[..read]);
    }
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().filter_map(parse).collect()
}

/// The children of a process, zombies too.
pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    static LISTED: OnceLock<bool> = OnceLock::new();
    let listed = LISTED.get_or_init(|| fs::exists("/proc/thread-self/children").unwrap_or(false));
    if *listed {
        listed_children(pid)
    } else {
        scanned_children(pid)
    }
}

/// The process group of a process that is surely there.
pub(crate) fn group_of(pid: Pid) -> Option<i32> {
    getpgid(Some(nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get())))
        .ok()
        .map(nix::unistd::Pid::as_raw)
}

/// Whether the process behind a descriptor has exited.
pub(crate) fn has_exited(process: &OwnedFd) -> bool {
    is_readable(process, Duration::ZERO)
}

fn descend(
    pid: Pid,
    parent: Pid,
    parent_lives: &dyn Fn() -> bool,
    visit: &mut dyn FnMut(Seen),
    exited: &mut HashSet<Pid>,
) {
    let Some(seen) = Seen::child_of(pid, parent).filter(|_| parent_lives()) else {
        exited.insert(pid);
        return;
    };
    for child in children(pid) {
        descend(child, pid, &|| !has_exited(&seen.process), visit, exited);
    }
    // Otherwise the list was all that was below it.
    if has_exited(&seen.process) {
        exited.insert(pid);
    }
    visit(seen);
}

fn listed_children(pid: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(parse).collect::<Vec<_>>())
        .collect()
}

/// Where the kernel keeps no lists: everybody is asked for its parent.
fn scanned_children(pid: Pid) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let all = entries
        .flatten()
        .filter_map(|entry| parse(entry.file_name().to_str()?));
    all.filter(|child| status(*child).is_some_and(|status| status.parent == pid.as_raw_nonzero().get()))
        .collect()
}

fn parse(number: &str) -> Option<Pid> {
    Pid::from_raw(number.parse().ok()?)
}

#[cfg(test)]
mod tests;
