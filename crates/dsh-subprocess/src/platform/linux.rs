//! Linux: pidfds and `/proc`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, test_kill_process};

use super::{Look, is_member};
use crate::facts::Member;

/// The leader stays an unreaped zombie until its group is empty; `/proc` tells zombies from the living.
pub(crate) const LEADER_HOLDS_GROUP: bool = true;

/// The longest command shown, in characters.
const COMMAND_LIMIT: usize = 200;

/// What stands for the command of a process that this one may not look at (`hidepid`).
const HIDDEN: &str = "(hidden)";

/// How many passes a look may take before it is given up and tried later.
const PASSES: u32 = 16;

/// A descriptor that becomes readable when `pid` exits. `None` when the system has none to give.
pub(crate) fn exit_descriptor(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Who lives in the group of `leader`, a process that was not reaped yet.
///
/// A pass over `/proc` that meets nobody proves nothing by itself: a member can fork a child with a number
/// that the pass is over with, and exit before the pass gets to it. So a pass counts only if no process was
/// created meanwhile: whoever lives at its end then lived all along, under a number that the pass has met.
/// On a machine that forks without pause it may take several.
pub(crate) fn look(leader: Pid) -> Look {
    let mut look = Look {
        living: Vec::new(),
        complete: false,
    };
    for _ in 0..PASSES {
        let before = last_pid();
        look = pass(leader);
        if !look.is_empty() || before.is_some() && before == last_pid() {
            return look;
        }
    }
    look.complete = false;
    look
}

/// `pid` as people know it.
pub(crate) fn describe(pid: Pid) -> Member {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = Stat::parse(&stat);
    if stat.is_none() && test_kill_process(pid) != Err(Errno::SRCH) {
        return Member {
            pid: pid.as_raw_nonzero().get().unsigned_abs(),
            command: HIDDEN.to_owned(),
        };
    }
    // The arguments lie in the memory of the process. Reading them may block on one that hangs in the
    // kernel, and that is the one that survives a KILL; its name is in the kernel's own record.
    let hangs = stat.as_ref().is_none_or(|stat| stat.state == b'D');
    let arguments = if hangs {
        Vec::new()
    } else {
        fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
    };
    let name = stat.map_or_else(String::new, |stat| {
        String::from_utf8_lossy(stat.name).into_owned()
    });
    let arguments = one_line(&String::from_utf8_lossy(&arguments));
    let command = if arguments.is_empty() {
        one_line(&name)
    } else {
        arguments
    };
    Member {
        pid: pid.as_raw_nonzero().get().unsigned_abs(),
        command,
    }
}

/// Whose child a process is, and in which group. `None` when it is gone.
pub(crate) fn status(pid: Pid) -> Option<Status> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let Stat {
        state,
        parent,
        group,
        told_by,
        ..
    } = Stat::parse(&stat)?;
    Some(Status {
        parent,
        group,
        stands_still: matches!(state, b'T' | b't'),
        told_by,
    })
}

/// What [`status`] tells.
pub(crate) struct Status {
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// Whether a signal or a debugger has stopped it.
    pub(crate) stands_still: bool,
    /// The signal that tells its parent of its end. An orphan has SIGCHLD, whatever it was made with.
    pub(crate) told_by: i32,
}

/// The number given out last in our pid namespace, which also numbers what is created in those below it.
fn last_pid() -> Option<u32> {
    let text =
        fs::read_to_string("/proc/sys/kernel/ns_last_pid").or_else(|_| fs::read_to_string("/proc/loadavg"));
    text.ok()?.split_whitespace().last()?.parse().ok()
}

/// One pass. It is complete if it met the leader: there is a `/proc`, and it is that of our pid namespace.
fn pass(leader: Pid) -> Look {
    let mut look = Look {
        living: Vec::new(),
        complete: false,
    };
    let Ok(entries) = fs::read_dir("/proc") else {
        return look;
    };
    for entry in entries {
        let Ok(entry) = entry else {
            look.complete = false;
            return look;
        };
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else {
            continue;
        };
        let is_leader = pid == leader;
        look.complete |= is_leader;
        // One cheap system call sorts out all strangers; only members are read.
        if (is_leader || is_member(pid, leader)) && is_alive(pid) {
            look.living.push(pid);
        }
    }
    look
}

fn is_alive(pid: Pid) -> bool {
    match fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => Stat::parse(&stat).is_none_or(|stat| stat.is_alive()),
        Err(error) => !is_gone(&error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// What we need of a line of `/proc/<pid>/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat<'a> {
    name: &'a [u8],
    state: u8,
    parent: i32,
    group: i32,
    threads: u32,
    told_by: i32,
}

impl Stat<'_> {
    /// The name stands in parentheses and may contain any byte, parentheses too; numbers follow it.
    fn parse(line: &[u8]) -> Option<Stat<'_>> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?;
        let mut fields = line
            .get(close + 1..)?
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let state = *fields.next()?.first()?;
        let parent = number(fields.next()?)?;
        let group = number(fields.next()?)?;
        let threads = number(fields.nth(14)?)?;
        let told_by = number(fields.nth(17)?)?;
        Some(Stat {
            name,
            state,
            parent,
            group,
            threads,
            told_by,
        })
    }

    /// A process whose first thread has ended looks like a zombie while its other threads run on.
    fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X' | b'x') || self.threads > 1
    }
}

fn number<T: std::str::FromStr>(field: &[u8]) -> Option<T> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn one_line(text: &str) -> String {
    let spaced = text.replace(
        |c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}',
        " ",
    );
    let mut line = spaced.trim().to_owned();
    if let Some((end, _)) = line.char_indices().nth(COMMAND_LIMIT) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests;
