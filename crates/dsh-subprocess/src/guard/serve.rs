//! The guard of a command.
//!
//! It starts the leader, reaps it and whatever is re-parented here, ends the tree when told so or when nobody
//! is there to tell, and reports what it sees.
//!
//! A guard without children is as good as a new one, and better: what it needs of its memory is its own by then. So it
//! waits for another order, unless something was done to it: it was told to kill, or sent a signal by whomever. What it
//! was told is overwritten as soon as the leader runs: the next command may read the memory of its guard.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::prctl::set_dumpable;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, wait};

use super::ending::{Below, Killing, Leader, term};
use super::poll::{Children, Signalled};
use super::wire::{After, Limited, Order, Received, Report, Run, Script, Stage, Wait, receive};
use crate::cgroup::{Cgroup, Population, hits};
use crate::pace::Pace;
use crate::sys::fork::{Stillborn, spawn_into};
use crate::sys::{self, Launch, Leads, Others};

/// How long a tree has between TERM and KILL when the harness is gone.
const ORPHANED_GRACE: Duration = Duration::from_millis(500);
/// A cgroup in which somebody lives who is nobody's child here is asked again at this pace.
const ASK: Pace = Pace::new(Duration::from_micros(100), Duration::from_millis(20));

/// Serves commands, one after the other. Returns when there will be no other one, and no tree is left.
pub(super) fn serve(socket: OwnedFd) -> Result<(), Errno> {
    let children = Children::new().map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
    let mut harness = Harness(Some(socket));
    let mut after = After::Waits;
    while let (Some(socket), After::Waits) = (&harness.0, after) {
        let Some(order) = await_order(socket)? else {
            return Ok(());
        };
        let Run {
            kill_bound, limited, ..
        } = order.run;
        match start(order, &mut harness) {
            Ok(Running {
                leader,
                script,
                cgroup,
            }) => {
                harness.tell(&Report::Started {
                    leader: leader.as_raw_nonzero().get().cast_unsigned(),
                });
                after = Guard {
                    harness: &mut harness,
                    children: &children,
                    leader,
                    state: Leader::Unreaped,
                    status: None,
                    stop: Stop::No,
                    kill_bound,
                    signalled: Signalled::No,
                    cgroup,
                    limited,
                    ask: ASK,
                }
                .run();
                drop(script);
            }
            Err((stage, errno)) => {
                harness.tell(&Report::NotStarted { stage, errno });
                after = After::Goes;
            }
        }
    }
    Ok(())
}

/// An order with its descriptors.
struct Attached {
    run: Run,
    stdio: [OwnedFd; 3],
    directory: OwnedFd,
    script: Option<OwnedFd>,
    cgroup: Option<Cgroup>,
}

/// A leader that runs.
struct Running {
    leader: Pid,
    /// The shell finds it here for as long as it likes: until nobody is left.
    script: Option<OwnedFd>,
    /// Where the leader was born.
    cgroup: Option<Cgroup>,
}

struct Guard<'a> {
    harness: &'a mut Harness,
    children: &'a Children,
    leader: Pid,
    state: Leader,
    /// How the leader exited, until that is told.
    status: Option<i32>,
    stop: Stop,
    kill_bound: Duration,
    signalled: Signalled,
    cgroup: Option<Cgroup>,
    limited: Limited,
    ask: Pace,
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
            report.send(socket);
        }
    }
}

impl Guard<'_> {
    fn run(mut self) -> After {
        loop {
            self.clear_signals();
            self.read_orders();
            let left = self.left();
            if left == Left::Nobody {
                self.tell_hits();
                let status = self.status;
                let guard = self.after();
                self.harness.tell(&Report::Empty { status, guard });
                return guard;
            }
            if let Some(status) = self.status.take() {
                self.harness.tell(&Report::Exit { status });
            }
            let ask_at = (left == Left::NoChild).then(|| Instant::now() + self.ask.next());
            let next = [self.kill_when_due(), ask_at].into_iter().flatten().min();
            let harness = self.harness.0.as_ref().map(AsFd::as_fd);
            self.children.sleep(&[harness], next);
        }
    }

    fn clear_signals(&mut self) {
        if self.children.clear() == Signalled::Yes {
            self.signalled = Signalled::Yes;
        }
    }

    /// What becomes of this guard, of whose tree nobody is left.
    ///
    /// The last member may have sent a signal after signals were looked at and exited before children were. What it has
    /// sent is here by now, since it is gone.
    fn after(&mut self) -> After {
        self.clear_signals();
        match (&self.stop, self.signalled) {
            (Stop::No, Signalled::No) => After::Waits,
            (Stop::Grace { .. } | Stop::Kill(_), _) | (_, Signalled::Yes) => After::Goes,
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

    /// No child means nobody, unless somebody else was put into the cgroup of this tree.
    fn left(&mut self) -> Left {
        match (self.reap(), &self.cgroup) {
            (Left::Nobody, Some(cgroup)) if cgroup.population() == Population::Somebody => Left::NoChild,
            (left, _) => left,
        }
    }

    fn tell_hits(&mut self) {
        if let (Limited::Yes, Some(cgroup)) = (self.limited, &self.cgroup) {
            let hits = hits(cgroup);
            self.harness.tell(&Report::Reached(hits));
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
                    self.status = Some(status.as_raw());
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
        let doomed = Below {
            cgroup: self.cgroup.as_ref(),
            spared: &|_| false,
        };
        if let Some(survivors) = killing.step(now, self.kill_bound, &doomed) {
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
    /// Somebody who is no child of this process.
    NoChild,
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
    let decoded = Order::decode(&message);
    overwrite(message);
    let Some(Order::Run(run)) = decoded else {
        return Ok(None);
    };
    let mut descriptors = descriptors.into_iter();
    let mut next = || descriptors.next();
    let (Some(stdin), Some(stdout), Some(stderr), Some(directory)) = (next(), next(), next(), next()) else {
        return Ok(None);
    };
    let script = match run.script {
        Script::Attached => next(),
        Script::None => None,
    };
    Ok(Some(Attached {
        run,
        stdio: [stdin, stdout, stderr],
        directory,
        script,
        cgroup: next().map(Cgroup::new),
    }))
}

/// Starts the leader.
fn start(order: Attached, harness: &mut Harness) -> Result<Running, (Stage, i32)> {
    let Attached {
        run,
        stdio,
        directory,
        script,
        cgroup,
    } = order;
    let mut argv = run.argv;
    match (run.script, &script) {
        (Script::Attached, Some(script)) => {
            let path = format!("/proc/{}/fd/{}", getpid(), script.as_raw_fd());
            // A program that its user may execute but not read makes processes whose `/proc` others cannot open. There
            // is nothing to hide in this one. If it stays so all the same, the shell says it.
            let _ = set_dumpable(true);
            let opened = File::open(&path).map_err(|error| (Stage::Script, number(&error)));
            drop(opened?);
            argv.extend([c"-c".to_owned(), c_string(reading(&path))?]);
        }
        (Script::Attached, None) => return Err((Stage::Order, libc::EINVAL)),
        (Script::None, _) => {}
    }
    let launch = Launch {
        program: &run.program,
        argv: &argv,
        env: &run.env,
        directory: directory.as_fd(),
        stdio: stdio.each_ref().map(AsFd::as_fd),
        socket: None,
        leads: Leads::Session,
        others: Others::CloseThemselves,
    };
    let spawned = spawn(&launch, cgroup, run.limited, harness);
    argv.into_iter()
        .chain(run.env)
        .for_each(|text| overwrite(text.into_bytes()));
    let (leader, cgroup) = spawned?;
    Ok(Running {
        leader,
        script,
        cgroup,
    })
}

/// In the cgroup, if there is one that takes it; one that limits it must.
fn spawn(
    launch: &Launch<'_>,
    cgroup: Option<Cgroup>,
    limited: Limited,
    harness: &mut Harness,
) -> Result<(Pid, Option<Cgroup>), (Stage, i32)> {
    if let Some(cgroup) = cgroup {
        match (spawn_into(cgroup.as_fd(), launch), limited) {
            (Ok(leader), _) => return Ok((leader, Some(cgroup))),
            (Err(Stillborn::NoProgram(error)), _) => return Err((Stage::Spawn, number(&error))),
            (Err(Stillborn::NoProcess(error)), Limited::Yes) => return Err((Stage::Cgroup, number(&error))),
            // Not every kernel can, and not every cgroup takes processes; a shortage shows again.
            (Err(Stillborn::NoProcess(_)), Limited::No) => harness.tell(&Report::OutOfCgroup),
        }
    }
    match sys::spawn(launch) {
        Ok(leader) => Ok((leader, None)),
        Err(error) => Err((Stage::Spawn, number(&error))),
    }
}

/// For what the next command must not find in the memory of this process.
fn overwrite(mut text: Vec<u8>) {
    text.fill(0);
    // As if somebody read it: a write that nobody reads may be left out.
    std::hint::black_box(&text);
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

#[cfg(test)]
mod tests;
