//! Starting a process under a guard.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::error::SpawnError;
use crate::guard::wire::{MESSAGE_LIMIT, Order, Received, Report, Run, Script, Stage, Wait, receive, send};
use crate::guarded::Guarded;
use crate::keeper;
use crate::prepare::Prepared;
use crate::spawn::{Launched, blame};
use crate::spec::ProcessSpec;
use crate::supervisor::{NoGuard, Ready, Supervisor, failed, wait_for};
use crate::tree::ProcessTree;

/// How many guards and supervisors may be lost in a row before a start is given up on.
const ATTEMPTS: u32 = 8;

/// The guards of a launcher. The supervisor is started with the first process, and again when it is lost.
#[derive(Debug)]
pub(crate) struct Guards {
    program: CString,
    supervisor: Mutex<Option<Arc<Supervisor>>>,
}

impl Guards {
    pub(crate) fn new(program: CString) -> Guards {
        Guards {
            program,
            supervisor: Mutex::new(None),
        }
    }

    pub(crate) fn launch(&self, mut spec: ProcessSpec) -> Result<Launched, SpawnError> {
        let script = spec.bash_command.take().map(script_file).transpose()?;
        let kill_bound = spec.kill_bound;
        let prepared = Prepared::new(spec)?;
        let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
        let mut message = MessageWithFiles::new(&prepared, script.as_ref(), kill_bound)?;
        let (ready, supervisor) = self.order(&mut message)?;
        let started = await_start(&ready, &supervisor, &prepared);
        let Heard { leader, report } = started.inspect_err(|_| supervisor.replace())?;
        let guarded = Arc::new(Guarded::new(Arc::clone(&ready), supervisor, leader, kill_bound));
        keeper.watch_guard(Arc::clone(&guarded), ready, prepared.feed, report);
        Ok(Launched {
            tree: ProcessTree::of_guard(guarded),
            stdout: prepared.stdout,
            stderr: prepared.stderr,
        })
    }

    /// Gives the order to a guard that is surely there.
    fn order(&self, message: &mut MessageWithFiles<'_>) -> Result<(Arc<Ready>, Arc<Supervisor>), SpawnError> {
        for _ in 0..ATTEMPTS {
            let supervisor = self.supervisor()?;
            let ready = match supervisor.take() {
                Ok(ready) => ready,
                Err(NoGuard::Lost) => continue,
                Err(NoGuard::NeverHeard) => {
                    let source =
                        io::Error::other("it says nothing; does it call guard_entry() first in main?");
                    return Err(failed(&self.program, source));
                }
                Err(NoGuard::Refused(error)) => return Err(SpawnError::resources("a guard", error)),
            };
            // A guard that was lost while it waited has a report of that, and has run nothing.
            let waits = matches!(receive(&ready.socket, Wait::No), Ok(Received::Nothing));
            if !waits {
                supervisor.replace();
                continue;
            }
            match message.send(&ready.socket)? {
                Ok(()) => return Ok((ready, supervisor)),
                // It went just now.
                Err(Errno::PIPE | Errno::CONNRESET) => supervisor.replace(),
                Err(errno) => {
                    supervisor.replace();
                    return Err(SpawnError::resources("an order to a guard", errno));
                }
            }
        }
        let source = io::Error::other("it ends at once; does it call guard_entry() first in main?");
        Err(failed(&self.program, source))
    }

    fn supervisor(&self) -> Result<Arc<Supervisor>, SpawnError> {
        let mut current = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(supervisor) = current.as_ref().filter(|supervisor| !supervisor.is_lost()) {
            return Ok(Arc::clone(supervisor));
        }
        // What waits in the socket of a lost one ends with it.
        *current = None;
        let supervisor = Arc::new(Supervisor::start(&self.program)?);
        *current = Some(Arc::clone(&supervisor));
        Ok(supervisor)
    }
}

/// An order as it is sent.
struct MessageWithFiles<'a> {
    bytes: Vec<u8>,
    borrowed: Vec<BorrowedFd<'a>>,
    /// The order itself, when it is too long for a message.
    file: Option<OwnedFd>,
}

impl<'a> MessageWithFiles<'a> {
    fn new(
        prepared: &'a Prepared,
        script: Option<&'a OwnedFd>,
        kill_bound: Duration,
    ) -> Result<Self, SpawnError> {
        let order = Order::Run(Run {
            program: prepared.program.clone(),
            argv: prepared.argv.clone(),
            env: prepared.env.clone(),
            kill_bound,
            script: if script.is_some() {
                Script::Attached
            } else {
                Script::None
            },
        });
        let bytes = order.encode();
        let stdio = prepared.stdio.iter().map(AsFd::as_fd);
        let borrowed = stdio
            .chain([prepared.directory.as_fd()])
            .chain(script.map(AsFd::as_fd));
        let mut message = MessageWithFiles {
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
    fn send(&mut self, socket: &OwnedFd) -> Result<Result<(), Errno>, SpawnError> {
        match send(socket, &self.bytes, &self.descriptors()) {
            Err(Errno::MSGSIZE) if self.file.is_none() => {
                self.put_into_file()?;
                Ok(send(socket, &self.bytes, &self.descriptors()))
            }
            sent => Ok(sent),
        }
    }

    fn put_into_file(&mut self) -> Result<(), SpawnError> {
        self.file = Some(memory_file(&self.bytes)?);
        self.bytes = Order::RunFromFile.encode();
        Ok(())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut descriptors = self.borrowed.clone();
        descriptors.extend(self.file.as_ref().map(AsFd::as_fd));
        descriptors
    }
}

/// What was heard first of a program that was started.
struct Heard {
    leader: Pid,
    /// What there is to hear besides.
    report: Option<Report>,
}

/// Waits until the program runs, or does not.
///
/// A command can kill its guard before that has told anything. The program was started all the same, so this is no
/// failure to start; all that is not known is its number, and the guard's stands for it.
fn await_start(ready: &Ready, supervisor: &Supervisor, prepared: &Prepared) -> Result<Heard, SpawnError> {
    loop {
        let report = match receive(&ready.socket, Wait::No) {
            Ok(Received::Message(message, _)) => Report::decode(&message),
            Ok(Received::Nothing) => {
                if !wait_for(&ready.socket) {
                    ready.go_on();
                    supervisor.go_on();
                }
                continue;
            }
            Ok(Received::End) | Err(_) => None,
        };
        return match report {
            Some(Report::NotStarted { stage, errno }) => Err(refusal(stage, errno, prepared)),
            Some(Report::Started { leader }) => Ok(Heard {
                leader: i32::try_from(leader)
                    .ok()
                    .and_then(Pid::from_raw)
                    .unwrap_or(ready.guard),
                report: None,
            }),
            report => Ok(Heard {
                leader: ready.guard,
                report,
            }),
        };
    }
}

fn refusal(stage: Stage, errno: i32, prepared: &Prepared) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    match stage {
        Stage::Spawn => blame(source, &prepared.asked, prepared.directory.as_fd()),
        Stage::Script => SpawnError::resources("a view of the command in /proc", source),
        Stage::Order => SpawnError::resources("a process", source),
    }
}

/// The command, such that a command substitution gives all of it that means anything: that drops newlines at the
/// end, and a backslash before them would then be one that continues nothing.
fn script_file(command: OsString) -> Result<OwnedFd, SpawnError> {
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
