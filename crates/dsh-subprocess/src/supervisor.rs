//! The supervisor of a launcher and the guards that it keeps ready, as this program sees them.
//!
//! Ready guards wait in the socket to the supervisor: as many are asked for at the start as are kept ready, and for each
//! one that is taken out another one is asked for: when its command has ended or has run for a while, or when somebody
//! waits for one. Any sooner, making it would take a processor from the command. This program keeps no list of them, and
//! when it is gone the kernel closes what is still in the socket, which ends them.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};

use crate::error::SpawnError;
use crate::guard::members::has_exited;
use crate::guard::wire::{Offer, Received, Wait, pair, receive, send};
use crate::prepare::above_stdio;
use crate::wait::is_readable;
use crate::{guard, keeper, sys};

/// How many guards are kept ready. They are taken by commands that start at once; more than processors are of no use.
const READY: usize = 8;
/// How long a process that does not answer is waited for before it is told to go on.
const SILENCE: Duration = Duration::from_millis(500);
/// After this many times it is given up on.
const SILENCES: u32 = 20;
/// And after this many if it never said anything: then it may be another program.
const FIRST_SILENCES: u32 = 10;

/// The way to a supervisor. It ends when the last way is dropped and its trees are empty.
#[derive(Debug)]
pub(crate) struct Supervisor {
    main: OwnedFd,
    process: OwnedFd,
    /// How many guards were taken for which no other one was asked yet.
    owed: AtomicUsize,
    /// Whether it ever said anything.
    heard: AtomicBool,
}

/// A guard that waits for its order.
pub(crate) struct Ready {
    pub(crate) guard: Pid,
    pub(crate) socket: OwnedFd,
    pub(crate) process: OwnedFd,
}

impl Ready {
    /// Lets it go on if it was stopped.
    pub(crate) fn go_on(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// Why there is no guard.
pub(crate) enum NoGuard {
    /// The supervisor is gone.
    Lost,
    /// It never said anything, and was ended.
    NeverHeard,
    /// The system gave none.
    Refused(io::Error),
}

impl Supervisor {
    /// Starts `program` as a supervisor.
    pub(crate) fn start(program: &CStr) -> Result<Supervisor, SpawnError> {
        let keeper = keeper::get().map_err(|error| SpawnError::resources("the watching thread", error))?;
        let resources = |errno| SpawnError::resources("the socket of a supervisor", errno);
        let (main, other) = pair().map_err(resources)?;
        let (main, other) = (above_stdio(main)?, above_stdio(other)?);
        let null = open("/dev/null", OFlags::RDWR)?;
        let root = open("/", OFlags::DIRECTORY | OFlags::RDONLY)?;
        let pid = sys::spawn(&sys::Launch {
            program,
            argv: &[guard::SUPERVISOR.to_owned()],
            env: &loader_environment(),
            directory: root.as_fd(),
            stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
            socket: Some(other.as_fd()),
            leads: sys::Leads::Session,
            others: sys::Others::Close,
        })
        .map_err(|source| failed(program, source))?;
        // It is a child that nobody has reaped, so this is it.
        let watched = pidfd_open(pid, PidfdFlags::empty()).map_err(resources);
        let process = pidfd_open(pid, PidfdFlags::empty()).map_err(resources);
        match (watched, process) {
            (Ok(watched), Ok(process)) => {
                keeper.watch_child(watched);
                let supervisor = Supervisor {
                    main,
                    process,
                    owed: AtomicUsize::new(0),
                    heard: AtomicBool::new(false),
                };
                (0..READY).for_each(|_| supervisor.ask());
                Ok(supervisor)
            }
            (Err(error), _) | (_, Err(error)) => {
                // It cannot be watched. It has made nothing yet, so it is killed, which is soon.
                let _ = kill_process(pid, Signal::KILL);
                while matches!(waitpid(Some(pid), WaitOptions::empty()), Err(Errno::INTR)) {}
                Err(error)
            }
        }
    }

    /// Asks for another guard for one that was taken, unless that was done.
    pub(crate) fn replace(&self) {
        let one_less = |owed: usize| owed.checked_sub(1);
        if self
            .owed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
        {
            self.ask();
        }
    }

    fn ask(&self) {
        // A supervisor that is gone is noticed by whoever takes the next one.
        let _ = send(&self.main, &[0], &[]);
    }

    /// Takes a ready guard, which is to be replaced then; waits for one if there is none.
    pub(crate) fn take(&self) -> Result<Ready, NoGuard> {
        let mut refusals = 0;
        let mut silences = 0;
        loop {
            if self.is_lost() {
                return Err(NoGuard::Lost);
            }
            match receive(&self.main, Wait::No) {
                Ok(Received::Message(message, descriptors)) => {
                    self.heard.store(true, Ordering::Relaxed);
                    match (Offer::decode(&message), to_pair(descriptors)) {
                        (Some(Offer::Ready { guard }), Some((socket, process))) => {
                            let guard = i32::try_from(guard).ok().and_then(Pid::from_raw);
                            self.owed.fetch_add(1, Ordering::Relaxed);
                            return guard.map_or(Err(NoGuard::Lost), |guard| {
                                Ok(Ready {
                                    guard,
                                    socket,
                                    process,
                                })
                            });
                        }
                        (Some(Offer::Refused { errno }), _) => {
                            // It may be an old one: there may be room again.
                            self.ask();
                            refusals += 1;
                            if refusals > READY {
                                return Err(NoGuard::Refused(io::Error::from_raw_os_error(errno)));
                            }
                        }
                        (Some(Offer::Ready { .. }) | None, _) => return Err(NoGuard::Lost),
                    }
                }
                // No room here for its descriptors, so it is gone.
                Err(Errno::MFILE) => {
                    self.ask();
                    return Err(NoGuard::Refused(Errno::MFILE.into()));
                }
                Ok(Received::End) | Err(_) => return Err(NoGuard::Lost),
                Ok(Received::Nothing) => {
                    self.replace();
                    if wait_for(&self.main) {
                        continue;
                    }
                    silences += 1;
                    let heard = self.heard.load(Ordering::Relaxed);
                    if silences > if heard { SILENCES } else { FIRST_SILENCES } {
                        let _ = pidfd_send_signal(&self.process, Signal::KILL);
                        return Err(if heard { NoGuard::Lost } else { NoGuard::NeverHeard });
                    }
                    self.go_on();
                }
            }
        }
    }

    /// Whether it has exited. Guards that it made ready are not supervised then.
    pub(crate) fn is_lost(&self) -> bool {
        has_exited(&self.process)
    }

    /// Lets it go on if it was stopped.
    pub(crate) fn go_on(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

/// Why a program does not work as a supervisor.
pub(crate) fn failed(program: &CStr, source: io::Error) -> SpawnError {
    use std::os::unix::ffi::OsStrExt;
    SpawnError::Supervisor {
        program: std::ffi::OsStr::from_bytes(program.to_bytes()).into(),
        source,
    }
}

/// Waits for something to receive. Not for long: whether there was something.
pub(crate) fn wait_for(socket: &OwnedFd) -> bool {
    is_readable(socket, SILENCE)
}

/// Where the dynamic loader finds the libraries that this program was started with, and nothing else.
fn loader_environment() -> Vec<std::ffi::CString> {
    use std::os::unix::ffi::OsStringExt;
    let name = "LD_LIBRARY_PATH";
    let value = std::env::var_os(name).map(|value| [name.as_bytes(), b"=", &value.into_vec()].concat());
    value
        .and_then(|entry| std::ffi::CString::new(entry).ok())
        .into_iter()
        .collect()
}

fn open(path: &str, flags: OFlags) -> Result<OwnedFd, SpawnError> {
    let opened = rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty());
    above_stdio(opened.map_err(|errno| SpawnError::resources("a descriptor", errno))?)
}

fn to_pair(descriptors: Vec<OwnedFd>) -> Option<(OwnedFd, OwnedFd)> {
    let [first, second] = <[OwnedFd; 2]>::try_from(descriptors).ok()?;
    Some((first, second))
}
