//! The supervisor: makes guards, and ends what a guard that is gone left behind.
//!
//! Its children are guards, which are clone children (see [`fork_clone_child`]), and orphans, which are not: the kernel
//! makes every process that it re-parents an ordinary child. So a plain wait that finds no child is the proof
//! that no orphan is left, however many guards live.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setsid, wait,
};

use super::deputy::Deputy;
use super::inherited::Birthright;
use super::poll::Children;
use super::serve::serve;
use crate::cgroup::Home;
use crate::ending::{Below, Killing};
use crate::members::{children, keep_own_list};
use crate::sys;
use crate::sys::fork::{self, Forked, fork_clone_child};
use crate::wire::{Offer, Order, Received, Report, pair, receive, send};

/// A guard that is stopped this often is given up on.
const STOPS: u32 = 50;
/// How long guards have to end their trees once the program is gone: more than TERM, grace and KILL take. One that takes
/// longer does not run (a debugger may hold it), and what it guards is ended here.
const ORPHANED_BOUND: Duration = Duration::from_secs(2);
/// How long orphans may resist before they are named.
const KILL_BOUND: Duration = Duration::from_secs(10);

/// Runs until the harness and every guard are gone.
pub(super) fn run(main: OwnedFd) -> ! {
    // Dispositions first: a signal must end nothing that this process was not asked to end.
    let _ = SigSet::all().thread_block();
    sys::reset_signals();
    let Ok(main) = fork::keep_only(main) else {
        fork::exit(1)
    };
    let _ = rustix::thread::set_name(c"dsh-supervisor");
    keep_own_list();
    let deputy = Deputy {
        supervisor: getpid(),
        program: getppid(),
    };
    go_on_when_parent_ends();
    let subreaper = set_child_subreaper(Some(getpid()));
    let (Ok(()), Ok(children)) = (subreaper, Children::new()) else {
        fork::exit(1)
    };
    Supervisor {
        main: Some(main),
        children,
        guards: HashMap::new(),
        lost: Vec::new(),
        killing: None,
        home: None,
        birthright: Birthright::of_this_process(),
        deputy,
        program_gone: None,
    }
    .run();
    fork::exit(0)
}

struct Supervisor {
    main: Option<OwnedFd>,
    children: Children,
    guards: HashMap<Pid, Guard>,
    /// The sockets of guards that are gone and whose trees are not known to be empty.
    lost: Vec<OwnedFd>,
    killing: Option<Killing>,
    /// Where the cgroups of all commands are.
    home: Option<Home>,
    /// What guards are to be born with.
    birthright: Birthright,
    /// Who this process is, and the program that started it.
    deputy: Deputy,
    /// When that was seen to be gone.
    program_gone: Option<Instant>,
}

struct Guard {
    /// A copy of its own end of the socket.
    socket: OwnedFd,
    stops: u32,
}

impl Guard {
    /// Whether this one, which is gone, has left its order unread. If so it says that.
    fn has_left_order(&self) -> bool {
        // No other order comes after this: whoever sends one is told that it cannot.
        let _ = shutdown(&self.socket, Shutdown::Read);
        let is_order = match receive(&self.socket) {
            Ok(Received::Message(message, _)) => {
                matches!(Order::decode(&message), Some(Order::Run(_) | Order::RunFromFile))
            }
            // It has descriptors.
            Err(Errno::MFILE) => true,
            Ok(Received::Nothing | Received::End) | Err(_) => false,
        };
        if is_order {
            Report::Unread.send(&self.socket);
        }
        is_order
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Orphans {
    None,
    Some,
}

impl Supervisor {
    fn run(mut self) {
        loop {
            self.children.clear();
            self.read_requests();
            // A guard's death is seen first: its orphans are children of this process by then.
            self.reap_guards();
            let orphans = self.reap_orphans();
            let next = match orphans {
                Orphans::None => {
                    self.killing = None;
                    self.tell_lost(&Report::LostEmpty);
                    self.lost.clear();
                    None
                }
                Orphans::Some => Some(self.kill_orphans()),
            };
            if self.main.is_none() && self.guards.is_empty() && orphans == Orphans::None {
                // What stays is for the next program that makes cgroups in the same place.
                let _ = self.home.map(|home| home.remove());
                return;
            }
            if self.main.is_none() && orphans == Orphans::None && self.busy().is_empty() {
                self.send_away();
            }
            let next = [next, self.give_up_on_guards()].into_iter().flatten().min();
            let main = self.main.as_ref().map(AsFd::as_fd);
            self.children.sleep(&[main], next);
        }
    }

    /// Kills the guards that are left a while after the program went. Says when to look again.
    ///
    /// The death of the program wakes this process up: as the end of its socket, and as the signal that it asked for.
    fn give_up_on_guards(&mut self) -> Option<Instant> {
        if self.main.is_some() || self.guards.is_empty() || getppid() == self.deputy.program {
            return None;
        }
        let now = Instant::now();
        let until = *self.program_gone.get_or_insert(now) + ORPHANED_BOUND;
        if now < until {
            return Some(until);
        }
        // Those that only stand by may be needed yet.
        let mut late = self.busy();
        if late.is_empty() {
            late = self.guards.keys().copied().collect();
        }
        for guard in late {
            // A child that was not waited for, so it is this one.
            let _ = kill_process(guard, Signal::KILL);
        }
        Some(now + ORPHANED_BOUND)
    }

    /// The guards that have somebody to end.
    fn busy(&self) -> Vec<Pid> {
        let guards = self.guards.keys().copied();
        guards.filter(|guard| !children(*guard).is_empty()).collect()
    }

    /// Has all guards go that have nobody to end. One that is about to have somebody goes later.
    fn send_away(&self) {
        for guard in self.guards.keys() {
            let _ = kill_process(*guard, Signal::TERM);
        }
    }

    fn read_requests(&mut self) {
        while let Some(main) = &self.main {
            match receive(main) {
                Ok(Received::Message(name, mut descriptors)) if !descriptors.is_empty() => {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    self.home = descriptors.pop().map(|home| Home::shared(home, name));
                }
                // Guards would be born with what somebody has given to this process. The program makes another one.
                Ok(Received::Message(..)) if !self.birthright.is_whole() => self.main = None,
                Ok(Received::Message(..)) => {
                    let (offer, descriptors) = match self.make_guard() {
                        Ok((guard, socket, process)) => {
                            let guard = guard.as_raw_nonzero().get().cast_unsigned();
                            (Offer::Ready { guard }, vec![socket, process])
                        }
                        Err(errno) => (Offer::Refused { errno }, Vec::new()),
                    };
                    if let Some(main) = &self.main {
                        let attached: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
                        // If it cannot be told, the guard sees the end of its socket and goes.
                        if let Err(errno) = send(main, &offer.encode(), &attached) {
                            let errno = errno.raw_os_error();
                            let _ = send(main, &Offer::Refused { errno }.encode(), &[]);
                        }
                    }
                }
                Ok(Received::Nothing) | Err(Errno::MFILE) => return,
                Ok(Received::End) | Err(_) => self.main = None,
            }
        }
    }

    /// A new guard with the harness's end of its socket and a descriptor of its process.
    fn make_guard(&mut self) -> Result<(Pid, OwnedFd, OwnedFd), i32> {
        let (socket, guard_socket) = pair().map_err(Errno::raw_os_error)?;
        match fork_clone_child().map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))? {
            Forked::Child => become_guard(guard_socket, &self.birthright, self.deputy),
            Forked::Parent { child, process } => {
                let guard = Guard {
                    socket: guard_socket,
                    stops: 0,
                };
                self.guards.insert(child, guard);
                Ok((child, socket, process))
            }
        }
    }

    fn reap_guards(&mut self) {
        let clones = WaitOptions::from_bits_retain(libc::__WCLONE.cast_unsigned());
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | clones;
        loop {
            match wait(options) {
                Ok(Some((pid, status))) if status.stopped() => self.answer_stop(pid),
                Ok(Some((pid, status))) => {
                    let lost = self
                        .guards
                        .remove(&pid)
                        .filter(|_| status.exit_status() != Some(0));
                    if let Some(guard) = lost.filter(|guard| !guard.has_left_order()) {
                        self.lost.push(guard.socket);
                        // Survivors of an earlier one may have been named, which happens once: its own come anew.
                        self.killing = None;
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// The command of a guard may stop it, and may do so without end.
    fn answer_stop(&mut self, pid: Pid) {
        let Some(guard) = self.guards.get_mut(&pid) else {
            return;
        };
        guard.stops += 1;
        let answer = if guard.stops > STOPS {
            Signal::KILL
        } else {
            Signal::CONT
        };
        let _ = kill_process(pid, answer);
    }

    fn reap_orphans(&self) -> Orphans {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Err(Errno::CHILD) => return Orphans::None,
                Ok(None) | Err(_) => return Orphans::Some,
            }
        }
    }

    /// Says when to kill again.
    fn kill_orphans(&mut self) -> Instant {
        let now = Instant::now();
        let guards = &self.guards;
        let killing = self.killing.get_or_insert_with(|| Killing::from(now));
        let doomed = Below {
            cgroup: None,
            spared: &|pid| guards.contains_key(&pid),
        };
        let survivors = killing.step(now, KILL_BOUND, &doomed);
        let again_at = killing.again_at();
        if let Some(survivors) = survivors {
            self.tell_lost(&Report::LostSurvivors(survivors));
        }
        again_at
    }

    /// Which tree an orphan is from is not known when several guards are lost: all of them are told of it.
    fn tell_lost(&self, report: &Report) {
        for socket in &self.lost {
            report.send(socket);
        }
    }
}

/// A command can stop its guard and the supervisor. While the harness lives it lets them go on; when it is killed, the
/// kernel does, so that they see that and end everything. It also comes when only the harness's thread that made the
/// supervisor ends, and does nothing then.
fn go_on_when_parent_ends() {
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
}

fn become_guard(socket: OwnedFd, birthright: &Birthright, deputy: Deputy) -> ! {
    // Nothing of the supervisor may run on here, not even while a panic unwinds.
    let served = catch_unwind(AssertUnwindSafe(|| {
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        go_on_when_parent_ends();
        let _ = rustix::thread::set_name(c"dsh-guard");
        let socket = fork::keep_only(socket)
            .map_err(|error| Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO)))?;
        keep_own_list();
        serve(socket, &birthright.of_fork(), deputy)
    }));
    fork::exit(if matches!(served, Ok(Ok(()))) { 0 } else { 1 })
}
