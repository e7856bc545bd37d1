//! The guards that a supervisor keeps ready, and the way to the supervisor itself.
//!
//! As many guards are asked for at the start as are kept ready. One that is taken comes back when its command ends
//! soon; otherwise another one is asked for: when the command has run for a while, when the guard cannot be used again, or
//! when somebody waits for one. Any sooner, making it would take a processor from the command. When this program is gone
//! the kernel closes the sockets of the guards, which ends them.
//!
//! **Invariant**: guards that are ready, on their way or being made, and those that are owed, are [`READY`] together.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid,
};

use super::child::Child;
use super::ready::Ready;
use crate::cgroup::{Base, Home, Rooms};
use crate::error::SpawnError;
use crate::members::has_exited;
use crate::prepare::above_stdio;
use crate::wait::is_readable;
use crate::wire::{Offer, Received, pair, receive, send};
use crate::{guard, keeper, sys};

/// How many guards are kept ready. They are taken by commands that start at once; more than processors are of no use.
const READY: usize = 8;
/// How long a process that does not answer is waited for before it is told to go on.
const SILENCE: Duration = Duration::from_millis(500);
/// After this many times it is given up on.
const SILENCES: u32 = 20;
/// And after this many if it never said anything: then it may be another program.
const FIRST_SILENCES: u32 = 10;

/// The way to a supervisor, and the guards that it made. It ends when the last way is dropped and its trees are empty.
#[derive(Debug)]
pub(crate) struct Pool {
    main: OwnedFd,
    process: OwnedFd,
    /// The one that was used last is taken first. None stays in the socket for long: while sockets are under way, the
    /// kernel looks for unreachable ones whenever a socket is closed anywhere.
    ready: Mutex<VecDeque<Arc<Ready>>>,
    /// Held by whoever takes in what the supervisor offers, so that nobody waits for what another one has taken in. Taken
    /// before the lock of `ready`.
    turn: Mutex<()>,
    /// How many guards were taken that did not come back and for which no other one was asked yet.
    owed: AtomicUsize,
    /// Whether it ever said anything.
    heard: AtomicBool,
    /// Whether no other guard is asked of it: it makes none any more, or says nothing. It may be there for a while.
    given_up: AtomicBool,
    rooms: Option<Arc<Rooms>>,
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

impl Pool {
    /// Starts `program` as a supervisor; with cgroups for commands, if there is a base for them.
    pub(crate) fn start(program: &CStr, base: Option<&Base>) -> Result<Pool, SpawnError> {
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
                keeper.watch(Box::new(Child::new(watched)));
                let pool = Pool {
                    main,
                    process,
                    ready: Mutex::default(),
                    turn: Mutex::default(),
                    owed: AtomicUsize::new(0),
                    heard: AtomicBool::new(false),
                    given_up: AtomicBool::new(false),
                    rooms: base.and_then(rooms_in),
                };
                if let Some(rooms) = &pool.rooms {
                    let home = rooms.home();
                    let _ = send(&pool.main, home.name().as_bytes(), &[home.as_fd()]);
                }
                (0..READY).for_each(|_| pool.ask());
                Ok(pool)
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
        if self.settle() {
            self.ask();
        }
    }

    /// Takes a guard back that waits for another order. One that was replaced meanwhile goes.
    pub(crate) fn give_back(&self, guard: Arc<Ready>) {
        let mut ready = self.ready();
        if self.settle() {
            ready.push_back(guard);
        }
    }

    /// Whether one was owed, which it is no longer.
    fn settle(&self) -> bool {
        let one_less = |owed: usize| owed.checked_sub(1);
        self.owed
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }

    fn ask(&self) {
        // A supervisor that is gone is noticed by whoever takes the next one.
        let _ = send(&self.main, &[0], &[]);
    }

    /// Takes a ready guard; waits for one if there is none.
    pub(crate) fn take(&self) -> Result<Arc<Ready>, NoGuard> {
        if let Some(guard) = self.pop() {
            let turn = self.turn.try_lock();
            if turn.is_ok() && matches!(self.take_in(), Err(NoGuard::Lost)) {
                return Err(NoGuard::Lost);
            }
            return Ok(guard);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut refusals = 0;
        let mut silences = 0;
        loop {
            let refusal = self.take_in()?;
            if let Some(guard) = self.pop() {
                return Ok(guard);
            }
            if let Some(errno) = refusal {
                refusals += 1;
                if refusals > READY {
                    return Err(NoGuard::Refused(io::Error::from_raw_os_error(errno)));
                }
                continue;
            }
            self.replace();
            if wait_for(&self.main) {
                continue;
            }
            silences += 1;
            let heard = self.heard.load(Ordering::Relaxed);
            if silences > if heard { SILENCES } else { FIRST_SILENCES } {
                let _ = pidfd_send_signal(&self.process, Signal::KILL);
                self.give_up();
                return Err(if heard { NoGuard::Lost } else { NoGuard::NeverHeard });
            }
            self.go_on();
        }
    }

    /// Takes in what is offered. An error number is a refusal, for which it was asked again: it may be an old one, and
    /// there may be room by now.
    fn take_in(&self) -> Result<Option<i32>, NoGuard> {
        loop {
            match receive(&self.main) {
                Ok(Received::Message(message, descriptors)) => {
                    self.heard.store(true, Ordering::Relaxed);
                    match (Offer::decode(&message), to_pair(descriptors)) {
                        (Some(Offer::Ready { guard }), Some((socket, process))) => {
                            let guard = i32::try_from(guard).ok().and_then(Pid::from_raw);
                            self.ready().push_front(Arc::new(Ready {
                                guard: guard.ok_or(NoGuard::Lost)?,
                                socket,
                                process,
                            }));
                        }
                        (Some(Offer::Refused { errno }), _) => {
                            self.ask();
                            return Ok(Some(errno));
                        }
                        (Some(Offer::Ready { .. }) | None, _) => return Err(NoGuard::Lost),
                    }
                }
                Ok(Received::Nothing) => return Ok(None),
                // No room here for its descriptors, so it is gone.
                Err(Errno::MFILE) => {
                    self.ask();
                    return Err(NoGuard::Refused(Errno::MFILE.into()));
                }
                // It may live on until its guards are gone.
                Ok(Received::End) | Err(_) => {
                    self.give_up();
                    return Err(NoGuard::Lost);
                }
            }
        }
    }

    fn pop(&self) -> Option<Arc<Ready>> {
        let guard = self.ready().pop_back()?;
        self.owed.fetch_add(1, Ordering::Relaxed);
        Some(guard)
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Arc<Ready>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cgroups for commands of its guards, if they have some.
    pub(crate) fn rooms(&self) -> Option<&Arc<Rooms>> {
        self.rooms.as_ref()
    }

    /// Whether it has exited, or was given up on. Guards that it made ready are not supervised then.
    pub(crate) fn is_lost(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || has_exited(&self.process)
    }

    /// Has no other guard asked of it.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Lets it go on if it was stopped.
    pub(crate) fn go_on(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::CONT);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Those on their way are to hear that they can go, and those of a supervisor that is gone may be our children.
        let _ = self.take_in();
    }
}

/// Without, nothing changes for commands that have no limits.
fn rooms_in(base: &Base) -> Option<Arc<Rooms>> {
    let home = Home::create(base);
    home.inspect_err(
        |error| tracing::debug!(base = %base.path().display(), %error, "commands have no cgroups"),
    )
    .ok()
    .map(|home| Arc::new(Rooms::new(home)))
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
