//! An order, as it is sent to a guard: its text, and the descriptors that go with it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;

use crate::cgroup::Cgroup;
use crate::error::SpawnError;
use crate::limits::Limits;
use crate::prepare::Prepared;
use crate::wire::{Limited, MESSAGE_LIMIT, Order, Run, Script, send};

/// An order as it is sent.
pub(super) struct Message<'a> {
    bytes: Vec<u8>,
    borrowed: Vec<BorrowedFd<'a>>,
    /// The order itself, when it is too long for a message.
    file: Option<OwnedFd>,
}

impl<'a> Message<'a> {
    pub(super) fn new(
        prepared: &'a Prepared,
        script: Option<&'a OwnedFd>,
        kill_bound: Duration,
        limits: &Limits,
    ) -> Result<Self, SpawnError> {
        let order = Order::Run(Run {
            program: prepared.program.clone(),
            argv: prepared.argv.clone(),
            env: environment(&prepared.env, script),
            kill_bound,
            script: if script.is_some() {
                Script::Attached
            } else {
                Script::None
            },
            limited: if limits.is_none() {
                Limited::No
            } else {
                Limited::Yes
            },
        });
        let bytes = order.encode();
        let stdio = prepared.stdio.iter().map(AsFd::as_fd);
        let borrowed = stdio
            .chain([prepared.directory.as_fd()])
            .chain(script.map(AsFd::as_fd));
        let mut message = Message {
            bytes,
            borrowed: borrowed.collect(),
            file: None,
        };
        if message.bytes.len() > MESSAGE_LIMIT {
            message.put_into_file()?;
        }
        Ok(message)
    }

    /// Sends it, in a file if it is too long for this socket (`net.core.wmem_default` may be small). The inner error is
    /// of the socket.
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        cgroup: Option<&Cgroup>,
    ) -> Result<Result<(), Errno>, SpawnError> {
        match send(socket, &self.bytes, &self.descriptors(cgroup)) {
            Err(Errno::MSGSIZE) if self.file.is_none() => {
                self.put_into_file()?;
                Ok(send(socket, &self.bytes, &self.descriptors(cgroup)))
            }
            sent => Ok(sent),
        }
    }

    fn put_into_file(&mut self) -> Result<(), SpawnError> {
        self.file = Some(memory_file(&self.bytes)?);
        self.bytes = Order::RunFromFile.encode();
        Ok(())
    }

    fn descriptors<'b>(&'b self, cgroup: Option<&'b Cgroup>) -> Vec<BorrowedFd<'b>> {
        let mut descriptors = self.borrowed.clone();
        descriptors.extend(cgroup.map(AsFd::as_fd));
        descriptors.extend(self.file.as_ref().map(AsFd::as_fd));
        descriptors
    }
}

/// What a shell that reads its command from a file must not get: a function in the place of what makes it read that.
fn environment(all: &[CString], script: Option<&OwnedFd>) -> Vec<CString> {
    const BUILTIN: [&[u8]; 2] = [b"BASH_FUNC_builtin%%=", b"BASH_FUNC_builtin()="];
    let is_builtin = |entry: &CString| BUILTIN.iter().any(|name| entry.to_bytes().starts_with(name));
    let passed = all.iter().filter(|entry| script.is_none() || !is_builtin(entry));
    passed.cloned().collect()
}

/// The command, such that a command substitution gives all of it that means anything: that drops newlines at the
/// end, and a backslash before them would then be one that continues nothing.
pub(super) fn script_file(command: OsString) -> Result<OwnedFd, SpawnError> {
    let mut text = command.into_vec();
    if text.contains(&0) {
        return Err(SpawnError::Nul {
            what: "command".to_owned(),
        });
    }
    let end = text
        .iter()
        .rposition(|byte| *byte != b'\n')
        .map_or(0, |last| last + 1);
    let backslashes = text
        .iter()
        .take(end)
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count();
    if end < text.len() && backslashes % 2 == 1 {
        text.truncate(end - 1);
    }
    memory_file(&text)
}

fn memory_file(content: &[u8]) -> Result<OwnedFd, SpawnError> {
    let refused = |error| SpawnError::resources("a file in memory", error);
    let mut file = memfd_create("dsh", MemfdFlags::CLOEXEC)
        .map(File::from)
        .map_err(|errno: Errno| refused(errno.into()))?;
    file.write_all(content).map_err(refused)?;
    io::Seek::rewind(&mut file).map_err(refused)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests;
