//! What the system says of a server, and signals for those who are proven to be of one.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::Room;

/// What a process is to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Supervisor,
    Guard,
    Member,
}

/// Everybody in a room besides its server, and what they are to it.
pub(super) fn everybody(room: &Room, server: u32) -> Vec<(u32, Part)> {
    let others = room.processes().into_iter().filter(|pid| *pid != server);
    let with_part = others.map(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let part = match name.trim() {
            "dsh-supervisor" => Part::Supervisor,
            "dsh-guard" => Part::Guard,
            _ => Part::Member,
        };
        (pid, part)
    });
    with_part.collect()
}

/// A process of a room, whoever gets its number later.
#[derive(Debug)]
pub(super) struct Held(OwnedFd);

impl Held {
    /// Holds a process that has the mark of the room, and no other.
    pub(super) fn of(room: &Room, pid: u32) -> Option<Held> {
        let held = pidfd_open(Pid::from_raw(pid.cast_signed())?, PidfdFlags::empty()).ok()?;
        // Looked at while it is held: whoever has the number now is who is held, or nobody is.
        room.processes().contains(&pid).then_some(Held(held))
    }

    /// Whether it was there to be signalled.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.0, signal).is_ok()
    }
}

/// Sends a signal to a process of a room, and to nobody else.
pub(super) fn signal(room: &Room, pid: u32, signal: Signal) -> bool {
    Held::of(room, pid).is_some_and(|held| held.signal(signal))
}

/// Sets soft limits of a process, `nofile=9`.
pub(super) fn limit(pid: u32, what: &str) -> bool {
    let mut prlimit = std::process::Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--{what}:")]);
    prlimit.stderr(std::process::Stdio::null());
    prlimit.status().is_ok_and(|status| status.success())
}

/// How many descriptors a process has open, and how many of these are sockets that listen.
pub(super) fn descriptors(pid: u32) -> (usize, usize) {
    let listening: Vec<String> = ["tcp", "tcp6"]
        .iter()
        .flat_map(|table| listening(table))
        .collect();
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let targets: Vec<PathBuf> = entries
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .collect();
    let listens = |target: &&PathBuf| listening.iter().any(|socket| Path::new(socket) == **target);
    (targets.len(), targets.iter().filter(listens).count())
}

/// Children of a process that have ended and were not waited for.
pub(super) fn zombies(parent: u32) -> Vec<u32> {
    let all = numbers("/proc")
        .filter(|pid| stat(*pid).is_some_and(|(state, above)| state == "Z" && above == parent));
    all.collect()
}

/// The most memory that a process was ever seen to hold, in KiB.
pub(super) fn peak_kib(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The cgroups that are left of the supervisors of a server.
pub(super) fn cgroups(server: u32) -> Vec<PathBuf> {
    let name = format!("dsh-commands-{server}-");
    let mut found = Vec::new();
    let mut look: Vec<(PathBuf, usize)> = vec![("/sys/fs/cgroup".into(), 0)];
    while let Some((directory, depth)) = look.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&name) {
                found.push(entry.path());
            } else if depth < 3 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                look.push((entry.path(), depth + 1));
            }
        }
    }
    found
}

/// Sockets that listen, as they are named in a table of descriptors.
fn listening(table: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|row| {
        let columns: Vec<&str> = row.split_whitespace().collect();
        (*columns.get(3)? == "0A").then_some(format!("socket:[{}]", columns.get(9)?))
    });
    rows.collect()
}

fn stat(pid: u32) -> Option<(String, u32)> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process in words.
pub(super) fn describe(pid: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let status = read("status");
    let told = status.lines().filter(|line| {
        ["State:", "PPid:", "Name:"]
            .iter()
            .any(|name| line.starts_with(name))
    });
    let told: Vec<&str> = told.collect();
    format!("{pid} {} {}", told.join(" "), read("cmdline").replace('\0', " "))
}
