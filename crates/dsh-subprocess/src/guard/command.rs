//! The guard of one command.
//!
//! It starts the leader, reaps it and whatever is re-parented here, ends the tree when told so or when nobody
//! is there to tell, and reports what it sees.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_dumpable;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, wait};

use super::ending::{Killing, Leader, term};
use super::poll::Children;
use super::wire::{Order, Received, Report, Run, Script, Stage, Wait, receive, send};
use crate::sys::{self, Launch, Leads, Others};

/// How long a tree has between TERM and KILL when the harness is gone.
const ORPHANED_GRACE: Duration = Duration::from_millis(500);

/// Serves one command and returns when its tree is empty, or when there will be no command.
pub(super) fn serve(socket: OwnedFd) -> Result<(), Errno> {
    let children = Children::new().map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
    let Some(order) = await_order(&socket)? else {
        return Ok(());
    };
    let kill_bound = order.run.kill_bound;
    let mut harness = Harness(Some(socket));
    match start(order) {
        Ok(leader) => {
            harness.tell(&Report::Started {
                leader: leader.as_raw_nonzero().get().cast_unsigned(),
            });
            Guard {
                harness,
                children,
                leader,
                state: Leader::Unreaped,
                stop: Stop::No,
                kill_bound,
            }
            .run();
        }
        Err((stage, errno)) => harness.tell(&Report::NotStarted { stage, errno }),
    }
    Ok(())
}

/// An order with its descriptors.
struct Attached {
    run: Run,
    stdio: [OwnedFd; 3],
    directory: OwnedFd,
    script: Option<OwnedFd>,
}

struct Guard {
    harness: Harness,
    children: Children,
    leader: Pid,
    state: Leader,
    stop: Stop,
    kill_bound: Duration,
}

/// How far the termination of the tree has come.
enum Stop {
    No,
    Grace { kill_at: Option<Instant> },
    Kill(Killing),
}

/// The way to the harness, while it is there.
struct Harness(Option<OwnedFd>);

impl Harness {
    fn tell(&mut self, report: &Report) {
        if let Some(socket) = &self.0 {
            // A harness that is gone is noticed when its orders are read.
            let _ = send(socket, &report.encode(), &[]);
        }
    }
}

impl Guard {
    fn run(mut self) {
        loop {
            self.children.clear();
            self.read_orders();
            if self.reap() == Left::Nobody {
                return self.harness.tell(&Report::Empty);
            }
            let next = self.kill_when_due();
            let harness = self.harness.0.as_ref().map(AsFd::as_fd);
            self.children.sleep(&[harness], next);
        }
    }

    fn read_orders(&mut self) {
        while let Some(socket) = &self.harness.0 {
            match receive(socket, Wait::No) {
                Ok(Received::Message(message, _)) => {
                    if let Some(Order::Kill { grace }) = Order::decode(&message) {
                        self.terminate(grace);
                    }
                }
                Ok(Received::Nothing) | Err(Errno::MFILE) => return,
                Ok(Received::End) | Err(_) => {
                    self.harness.0 = None;
                    self.terminate(Some(ORPHANED_GRACE));
                }
            }
        }
    }

    fn terminate(&mut self, grace: Option<Duration>) {
        let kill_at = grace.and_then(|grace| Instant::now().checked_add(grace));
        match &mut self.stop {
            Stop::No => {
                term(self.leader, self.state);
                self.stop = Stop::Grace { kill_at };
            }
            Stop::Grace { kill_at: planned } => {
                *planned = [*planned, kill_at].into_iter().flatten().min();
            }
            Stop::Kill(_) => {}
        }
    }

    fn reap(&mut self) -> Left {
        // Also those that some program created to end with another signal.
        let every_kind = WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned());
        loop {
            match wait(WaitOptions::NOHANG | every_kind) {
                // Its number may be another member's once it was reaped.
                Ok(Some((pid, status))) if pid == self.leader && self.state == Leader::Unreaped => {
                    self.state = Leader::Reaped;
                    let status = status.as_raw();
                    self.harness.tell(&Report::Exit { status });
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return Left::Nobody,
                Ok(None) | Err(_) => return Left::Somebody,
            }
        }
    }

    /// When the next KILL is due, if one is.
    fn kill_when_due(&mut self) -> Option<Instant> {
        let now = Instant::now();
        if let Stop::Grace { kill_at } = self.stop {
            match kill_at {
                Some(at) if at <= now => self.stop = Stop::Kill(Killing::from(now)),
                later => return later,
            }
        }
        let Stop::Kill(killing) = &mut self.stop else {
            return None;
        };
        if let Some(survivors) = killing.step(now, self.kill_bound, &|_| false) {
            self.harness.tell(&Report::Survivors(survivors));
        }
        Some(killing.again_at())
    }
}

/// Who is left below this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}

/// `None` when the harness goes, or says something else.
fn await_order(socket: &OwnedFd) -> Result<Option<Attached>, Errno> {
    let Received::Message(mut message, mut descriptors) = receive(socket, Wait::Yes)? else {
        return Ok(None);
    };
    if let Some(Order::RunFromFile) = Order::decode(&message) {
        let Some(file) = descriptors.pop() else {
            return Ok(None);
        };
        message = Vec::new();
        let read = File::from(file).read_to_end(&mut message);
        read.map_err(|error| Errno::from_raw_os_error(number(&error)))?;
    }
    let Some(Order::Run(run)) = Order::decode(&message) else {
        return Ok(None);
    };
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next();
    let (Some(stdin), Some(stdout), Some(stderr), Some(directory)) = (next(), next(), next(), next()) else {
        return Ok(None);
    };
    Ok(Some(Attached {
        run,
        stdio: [stdin, stdout, stderr],
        directory,
        script: next(),
    }))
}

/// Starts the leader.
fn start(order: Attached) -> Result<Pid, (Stage, i32)> {
    let Attached {
        run,
        stdio,
        directory,
        script,
    } = order;
    let mut argv = run.argv;
    match (run.script, script) {
        (Script::Attached, Some(script)) => {
            let path = format!("/proc/{}/fd/{}", getpid(), script.as_raw_fd());
            // A program that its user may execute but not read makes processes whose `/proc` others cannot open. There
            // is nothing to hide in this one. If it stays so all the same, the shell says it.
            let _ = set_dumpable(true);
            let opened = File::open(&path).map_err(|error| (Stage::Script, number(&error)));
            drop(opened?);
            argv.extend([c"-c".to_owned(), c_string(reading(&path))?]);
            // The shell finds it here for as long as it likes: as long as this process lives.
            std::mem::forget(script);
        }
        (Script::Attached, None) => return Err((Stage::Order, libc::EINVAL)),
        (Script::None, _) => {}
    }
    sys::spawn(&Launch {
        program: &run.program,
        argv: &argv,
        env: &run.env,
        directory: directory.as_fd(),
        stdio: stdio.each_ref().map(AsFd::as_fd),
        socket: None,
        leads: Leads::Session,
        others: Others::CloseThemselves,
    })
    .map_err(|error| (Stage::Spawn, number(&error)))
}

/// The shell text that runs what is in the file. A file that cannot be opened would pass for an empty command, and a
/// function called `eval` may come with the environment.
fn reading(path: &str) -> String {
    format!(": <{path} || exit 126; builtin eval -- \"$(<{path})\"")
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

fn c_string(text: String) -> Result<CString, (Stage, i32)> {
    CString::new(text).map_err(|_| (Stage::Order, libc::EINVAL))
}
