//! The cgroup of one command.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::process::Pid;

use super::files::{field, is_gone, read, visit, write};

/// A cgroup by its directory. What is done after its removal has no effect.
#[derive(Debug)]
pub(crate) struct Cgroup(OwnedFd);

/// Whether processes live in a cgroup or below it. Zombies do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Population {
    Nobody,
    Somebody,
}

impl Cgroup {
    pub(crate) fn new(directory: OwnedFd) -> Cgroup {
        Cgroup(directory)
    }

    /// Kills everybody in it and below it, also those that are being born.
    pub(crate) fn kill(&self) {
        let _ = write(&self.0, "cgroup.kill", "1");
    }

    /// Lets go on whom a command has frozen here.
    pub(crate) fn thaw(&self) {
        let _ = write(&self.0, "cgroup.freeze", "0");
    }

    /// Whether everybody in it stands still, by its own setting or by one above it.
    pub(crate) fn is_frozen(&self) -> bool {
        read(&self.0, "cgroup.events").is_ok_and(|events| field(&events, "frozen") == Some(1))
    }

    /// Whether somebody lives in it. A cgroup that is gone was empty.
    pub(crate) fn population(&self) -> Population {
        match read(&self.0, "cgroup.events") {
            Ok(events) if field(&events, "populated") == Some(0) => Population::Nobody,
            Err(error) if is_gone(&error) => Population::Nobody,
            Ok(_) | Err(_) => Population::Somebody,
        }
    }

    /// Who lives in it or below it, as far as this process can see them.
    pub(crate) fn members(&self) -> Vec<Pid> {
        let mut members = Vec::new();
        visit(&self.0, &mut |directory| {
            let listed = read(directory, "cgroup.procs").unwrap_or_default();
            members.extend(
                listed
                    .lines()
                    .filter_map(|line| Pid::from_raw(line.parse().ok()?)),
            );
        });
        members
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
