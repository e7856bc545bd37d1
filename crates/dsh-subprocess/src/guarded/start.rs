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

use crate::cgroup::{Base, Cgroup, Home, Room, impose, prepare_base, prepare_home};
use crate::error::{SpawnError, is_shortage};
use crate::guard::wire::{
    Limited, MESSAGE_LIMIT, Order, Received, Report, Run, Script, Stage, Wait, receive, send,
};
use crate::guarded::Guarded;
use crate::keeper;
use crate::limits::{LimitError, Limits};
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
    /// Where cgroups may be made.
    base: Option<Base>,
    supervisor: Mutex<Option<Arc<Supervisor>>>,
}

impl Guards {
    pub(crate) fn new(program: CString, base: Option<Base>) -> Guards {
        Guards {
            program,
            base,
            supervisor: Mutex::new(None),
        }
    }

    pub(crate) fn launch(&self, mut spec: ProcessSpec) -> Result<Launched, SpawnError> {
        let script = spec.bash_command.take().map(script_file).transpose()?;
        let (kill_bound, limits) = (spec.kill_bound, spec.limits);
        let prepared = Prepared::new(spec)?;
        let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
        let mut message = MessageWithFiles::new(&prepared, script.as_ref(), kill_bound, &limits)?;
        let Ordered {
            ready,
            supervisor,
            room,
        } = self.order(&mut message, &limits)?;
        let started = await_start(&ready, &supervisor, &prepared);
        let Heard {
            leader,
            place,
            report,
        } = started.inspect_err(|_| supervisor.replace())?;
        let room = room.filter(|_| place == Place::AsOrdered).map(Arc::new);
        let way = (Arc::clone(&ready), room.clone());
        let guarded = Arc::new(Guarded::new(way, supervisor, leader, kill_bound, limits));
        keeper.watch_guard(Arc::clone(&guarded), (ready, room), prepared.feed, report);
        Ok(Launched {
            tree: ProcessTree::of_guard(guarded),
            stdout: prepared.stdout,
            stderr: prepared.stderr,
        })
    }

    /// Whether commands can be held to these limits.
    pub(crate) fn check_limits(&self, limits: &Limits) -> Result<(), LimitError> {
        if limits.is_none() {
            return Ok(());
        }
        let base = self.limiting_base()?;
        let unusable = |error| LimitError::NoCgroup {
            missing: format!("{}: {error}", base.path().display()),
        };
        Home::create(base)
            .and_then(|home| home.remove())
            .map_err(unusable)?;
        prepare_base(base, limits)
    }

    fn limiting_base(&self) -> Result<&Base, LimitError> {
        self.base.as_ref().ok_or_else(|| LimitError::NoCgroup {
            missing: "none was found, or they are off".to_owned(),
        })
    }

    /// A cgroup for a command, limited as it has to be.
    fn room(&self, supervisor: &Supervisor, limits: &Limits) -> Result<Option<Room>, LimitError> {
        let rooms = supervisor.rooms();
        let room = rooms.and_then(|rooms| rooms.take());
        if limits.is_none() {
            return Ok(room);
        }
        let base = self.limiting_base()?;
        let (Some(rooms), Some(room)) = (rooms, room) else {
            return Err(LimitError::NoCgroup {
                missing: format!("none can be made in {}", base.path().display()),
            });
        };
        prepare_base(base, limits)?;
        prepare_home(rooms.home(), base, limits)?;
        impose(&*room, limits)?;
        Ok(Some(room))
    }

    /// Gives the order to a guard that is surely there.
    fn order(&self, message: &mut MessageWithFiles<'_>, limits: &Limits) -> Result<Ordered, SpawnError> {
        for _ in 0..ATTEMPTS {
            let supervisor = self.supervisor()?;
            let room = self.room(&supervisor, limits)?;
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
            match message.send(&ready.socket, room.as_deref())? {
                Ok(()) => {
                    return Ok(Ordered {
                        ready,
                        supervisor,
                        room,
                    });
                }
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
        let supervisor = Arc::new(Supervisor::start(&self.program, self.base.as_ref())?);
        *current = Some(Arc::clone(&supervisor));
        Ok(supervisor)
    }
}

/// Who got an order, and the cgroup that came with it.
struct Ordered {
    ready: Arc<Ready>,
    supervisor: Arc<Supervisor>,
    room: Option<Room>,
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
        limits: &Limits,
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
    fn send(&mut self, socket: &OwnedFd, cgroup: Option<&Cgroup>) -> Result<Result<(), Errno>, SpawnError> {
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

/// What was heard first of a program that was started.
struct Heard {
    leader: Pid,
    place: Place,
    /// What there is to hear besides.
    report: Option<Report>,
}

/// Where a program was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the cgroup that came with the order, if one did.
    AsOrdered,
    OutOfCgroup,
}

/// Waits until the program runs, or does not.
///
/// A command can kill its guard before that has told anything. The program was started all the same, so this is no
/// failure to start; all that is not known is its number, and the guard's stands for it.
fn await_start(ready: &Ready, supervisor: &Supervisor, prepared: &Prepared) -> Result<Heard, SpawnError> {
    let mut place = Place::AsOrdered;
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
            Some(Report::OutOfCgroup) => {
                place = Place::OutOfCgroup;
                continue;
            }
            Some(Report::NotStarted { stage, errno }) => Err(refusal(stage, errno, prepared)),
            Some(Report::Started { leader }) => Ok(Heard {
                leader: i32::try_from(leader)
                    .ok()
                    .and_then(Pid::from_raw)
                    .unwrap_or(ready.guard),
                place,
                report: None,
            }),
            report => Ok(Heard {
                leader: ready.guard,
                place,
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
        Stage::Cgroup if is_shortage(&source) => SpawnError::resources("a process", source),
        Stage::Cgroup => SpawnError::Limits(LimitError::NoCgroup {
            missing: format!("no process can be started in it: {source}"),
        }),
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
