//! The guard of one command.
//!
//! It starts the leader, reaps it and whatever is re-parented here, ends the tree when told so or when nobody
//! is there to tell, and reports what it sees.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, wait};

use super::ending::{Killing, Leader, term};
use super::poll::Children;
use super::wire::{Order, Received, Report, Run, Script, Stage, Wait, receive, send};
use crate::sys::fork::{self, Start};

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
        Ok((leader, failure)) => {
            // Before it can do anything: it may kill this guard, and must not be unknown then.
            harness.tell(&Report::Forked {
                leader: leader.as_raw_nonzero().get().cast_unsigned(),
            });
            Guard {
                harness,
                children,
                leader,
                state: State::Starting(failure),
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
    state: State,
    stop: Stop,
    kill_bound: Duration,
}

/// How far the leader has come.
enum State {
    /// It is forked; here its failure would be told.
    Starting(File),
    /// It never became the program.
    NotStarted,
    Running,
    Exited,
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
            self.follow_start();
            self.read_orders();
            if self.reap() == Left::Nobody {
                return self.harness.tell(&Report::Empty);
            }
            let next = self.kill_when_due();
            let start = match &self.state {
                State::Starting(failure) => Some(failure.as_fd()),
                State::NotStarted | State::Running | State::Exited => None,
            };
            let harness = self.harness.0.as_ref().map(AsFd::as_fd);
            self.children.sleep(&[harness, start], next);
        }
    }

    /// Tells how the start went, once that is known.
    fn follow_start(&mut self) {
        let State::Starting(failure) = &mut self.state else {
            return;
        };
        let mut message = [0; 5];
        let report = match failure.read(&mut message) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            // Closed by its success, or by a signal that was quicker.
            Ok(0) | Err(_) => {
                self.state = State::Running;
                Report::Started
            }
            Ok(_) => {
                self.state = State::NotStarted;
                let [stage, errno @ ..] = message;
                Report::NotStarted {
                    stage: Stage::from_code(stage).unwrap_or(Stage::Exec),
                    errno: i32::from_le_bytes(errno),
                }
            }
        };
        self.harness.tell(&report);
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
                let leader = match self.state {
                    State::Exited => Leader::Reaped,
                    State::Starting(_) | State::NotStarted | State::Running => Leader::Unreaped,
                };
                term(self.leader, leader);
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
                Ok(Some((pid, status))) if pid == self.leader => self.leader_exited(status.as_raw()),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Left::Somebody,
                Err(_) => return Left::Nobody,
            }
        }
    }

    fn leader_exited(&mut self, status: i32) {
        // How it started is known by now: whoever could tell otherwise is gone.
        self.follow_start();
        if !matches!(self.state, State::NotStarted) {
            self.harness.tell(&Report::Exit { status });
        }
        self.state = State::Exited;
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
        read.map_err(|error| Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO)))?;
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

/// Forks the leader. What comes back besides is where its failure is told.
fn start(order: Attached) -> Result<(Pid, File), (Stage, i32)> {
    let Attached {
        run,
        stdio,
        directory,
        script,
    } = order;
    let failed = |errno: Errno| (Stage::Fork, errno.raw_os_error());
    let (failure, told) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(failed)?;
    rustix::io::ioctl_fionbio(&failure, true).map_err(failed)?;
    let mut argv = run.argv;
    let path = match (run.script, &script) {
        (Script::Attached, Some(script)) => {
            let path = format!("/proc/{}/fd/{}", getpid(), script.as_raw_fd());
            argv.extend([c"-c".to_owned(), c_string(format!("eval -- \"$(<{path})\""))?]);
            Some(c_string(path)?)
        }
        (Script::Attached, None) => return Err((Stage::Order, libc::EINVAL)),
        (Script::None, _) => None,
    };
    let leader = fork::start(&Start {
        program: &run.program,
        argv: &argv,
        env: &run.env,
        directory: directory.as_fd(),
        stdio: stdio.each_ref().map(AsFd::as_fd),
        script: path.as_deref(),
        failure: told.as_fd(),
    })
    .map_err(|error| (Stage::Fork, error.raw_os_error().unwrap_or(libc::EAGAIN)))?;
    // The program finds its script here for as long as it likes: as long as this process lives.
    std::mem::forget(script);
    Ok((leader, File::from(failure)))
}

fn c_string(text: String) -> Result<CString, (Stage, i32)> {
    CString::new(text).map_err(|_| (Stage::Order, libc::EINVAL))
}
