//! One guarded tree: what its guard tells, and what to do when it tells nothing.
//!
//! A guard that was told to end its tree and is silent was stopped, or worse. First it is told to go on, and its
//! supervisor too. When it is silent long after it would have named survivors, the tree is ended from here: everybody
//! below the guard is killed, and then the guard. Its supervisor has the last word; if that is gone as well, the end is
//! not proven. A guard that not even a KILL ends (it is frozen, or hangs in the kernel) is named as the one who is left.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use super::Guarded;
use super::ready::Ready;
use crate::cgroup::{Hits, Population, Room};
use crate::ending::{Killing, Outcome, Outside};
use crate::facts::{LeaderExit, Member, Proof, TreeEnd};
use crate::feed::{Fed, Feed};
use crate::keeper::{Progress, Watched};
use crate::limits::{LimitReached, Limits};
use crate::pace::Pace;
use crate::platform;
use crate::wire::{After, Received, Report, receive};

/// When a guard is replaced whose command goes on and on.
const REPLACE_AFTER: Duration = Duration::from_millis(20);
/// A silent guard is told to go on at this pace.
const NUDGE: Pace = Pace::new(Duration::from_millis(100), Duration::from_secs(1));
/// How much later than a guard names survivors it is given up on.
const MARGIN: Duration = Duration::from_secs(1);
/// And how long it may take to go when it was killed then.
const DYING: Duration = Duration::from_secs(3);

/// A guarded tree, as the watching thread hears of it.
pub(super) struct Line {
    guarded: Arc<Guarded>,
    guard: Arc<Ready>,
    room: Option<Arc<Room>>,
    feed: Option<Feed>,
    heard: Option<Report>,
    replace_at: Option<Instant>,
    nudge: Pace,
    nudge_at: Option<Instant>,
    patience: Patience,
    reached: Vec<LimitReached>,
    rest: Option<Rest>,
}

/// Somebody is in the cgroup of a tree of which nobody else can see anybody any more: it is ended from here.
struct Rest {
    killing: Killing,
    /// What its end proves.
    proof: Proof,
}

/// What a silent guard is still given.
enum Patience {
    Waiting,
    /// It did what it could: survivors were named.
    Heard,
    /// The tree is ended from here.
    Outside(Outside),
    /// The guard was killed. If it is there at this time it is named.
    Killed {
        name_at: Instant,
    },
    /// It is gone, or was named.
    Over,
}

impl Watched for Line {
    fn step(&mut self, now: Instant) -> Progress {
        let progress = self.listen(now);
        let Some(at) = self.replace_at else {
            return progress;
        };
        match progress {
            Progress::Waiting(until) if now < at => {
                Progress::Waiting(Some(until.map_or(at, |until| until.min(at))))
            }
            progress => {
                self.replace_at = None;
                self.guarded.pool.replace();
                progress
            }
        }
    }

    fn poll_descriptors<'a>(&'a self, descriptors: &mut Vec<PollFd<'a>>) {
        if let Some(feed) = &self.feed {
            descriptors.push(PollFd::from_borrowed_fd(feed.as_fd(), PollFlags::OUT));
        }
        if self.rest.is_none() {
            descriptors.push(PollFd::new(&self.guard.socket, PollFlags::IN));
        }
    }
}

impl Line {
    pub(super) fn new(
        guarded: Arc<Guarded>,
        (guard, room): (Arc<Ready>, Option<Arc<Room>>),
        feed: Option<Feed>,
        heard: Option<Report>,
    ) -> Line {
        Line {
            guarded,
            guard,
            room,
            feed,
            heard,
            replace_at: Some(Instant::now() + REPLACE_AFTER),
            nudge: NUDGE,
            nudge_at: None,
            patience: Patience::Waiting,
            reached: Vec::new(),
            rest: None,
        }
    }

    fn listen(&mut self, now: Instant) -> Progress {
        if self
            .feed
            .as_mut()
            .is_some_and(|feed| matches!(feed.write(), Fed::All))
        {
            self.feed = None;
        }
        if self.rest.is_some() {
            return self.end_rest(now);
        }
        if let Some(report) = self.heard.take()
            && matches!(self.hear(report), Progress::Gone)
        {
            return Progress::Gone;
        }
        loop {
            match receive(&self.guard.socket) {
                Ok(Received::Message(message, _)) => match Report::decode(&message) {
                    Some(report) => {
                        if matches!(self.hear(report), Progress::Gone) {
                            return Progress::Gone;
                        }
                    }
                    None => tracing::warn!("a guard said something that makes no sense"),
                },
                Ok(Received::Nothing) => break,
                Ok(Received::End) | Err(_) if self.room.is_some() => {
                    return self.take_over(now, Proof::Cgroup);
                }
                Ok(Received::End) | Err(_) => {
                    self.both_lost();
                    return Progress::Gone;
                }
            }
        }
        Progress::Waiting(self.urge(now))
    }

    fn hear(&mut self, report: Report) -> Progress {
        match report {
            // Said before this thread listens, or after the start was given up: nobody has the handle then.
            Report::Started { .. } => {}
            Report::OutOfCgroup => self.room = None,
            Report::NotStarted { .. } | Report::Unread => {
                self.guarded.part();
                self.end(None, Vec::new(), Proof::Guard);
                return Progress::Gone;
            }
            Report::Reached(hits) => self.reached = reached(hits, &self.guarded.limits),
            Report::Exit { status } => self
                .guarded
                .status
                .send_modify(|told| told.leader = Some(LeaderExit::from_status(status))),
            Report::Empty { status, guard } => {
                let asked = self.guarded.part();
                if asked.is_none() && guard == After::Waits && self.replace_at.take().is_some() {
                    self.guarded.pool.give_back(Arc::clone(&self.guard));
                }
                let leader = status.map(LeaderExit::from_status);
                self.end(leader, Vec::new(), Proof::Guard);
                return Progress::Gone;
            }
            // Whoever was put into the cgroup is nobody's orphan.
            Report::LostEmpty => return self.take_over(Instant::now(), Proof::Supervisor),
            Report::Survivors(survivors) => {
                tracing::warn!(?survivors, "processes survive SIGKILL; killing goes on");
                self.patience = Patience::Heard;
                self.end(None, survivors, Proof::NotProven);
            }
            Report::LostSurvivors(survivors) => {
                tracing::warn!(
                    ?survivors,
                    "processes of a lost guard survive SIGKILL; killing goes on"
                );
                self.patience = Patience::Over;
                self.end(Some(LeaderExit::GuardLost), survivors, Proof::NotProven);
            }
        }
        Progress::Waiting(None)
    }

    /// Nobody else can see anybody of the tree, but whoever is in its cgroup is of it.
    fn take_over(&mut self, now: Instant, proof: Proof) -> Progress {
        let killing = Killing::from(now);
        self.rest = Some(Rest { killing, proof });
        self.end_rest(now)
    }

    /// Kills the cgroup until nobody is in it.
    fn end_rest(&mut self, now: Instant) -> Progress {
        let Some(Rest { killing, proof }) = &mut self.rest else {
            return Progress::Gone;
        };
        let proof = *proof;
        let Some(room) = self
            .room
            .as_deref()
            .filter(|room| room.population() == Population::Somebody)
        else {
            self.guarded.part();
            self.end(Some(LeaderExit::GuardLost), Vec::new(), proof);
            return Progress::Gone;
        };
        let survivors = killing.step(now, self.guarded.kill_bound, &**room);
        let again_at = killing.again_at();
        if let Some(survivors) = survivors {
            tracing::warn!(
                ?survivors,
                "processes of a lost guard survive SIGKILL; killing goes on"
            );
            self.end(Some(LeaderExit::GuardLost), survivors, Proof::NotProven);
        }
        Progress::Waiting(Some(again_at))
    }

    /// Whoever could have seen the end is gone. Who is in the leader's group is shown, and nobody is signalled: its
    /// number may be a stranger's by now.
    fn both_lost(&mut self) {
        self.guarded.part();
        // If it was not heard of, its guard's number stands for it.
        let living = if self.guarded.leader() != self.guard.guard {
            platform::look(self.guarded.leader()).living
        } else {
            Vec::new()
        };
        let survivors: Vec<_> = living.into_iter().map(platform::describe).collect();
        tracing::warn!(
            ?survivors,
            "guard and supervisor were both lost; the end of a tree is not proven"
        );
        self.end(Some(LeaderExit::GuardLost), survivors, Proof::NotProven);
    }

    /// A leader whose exit was seen keeps it.
    fn end(&mut self, leader: Option<LeaderExit>, survivors: Vec<Member>, proof: Proof) {
        self.guarded.status.send_modify(|status| {
            status.leader = status.leader.or(leader);
            status.end = Some(TreeEnd {
                leader: status.leader,
                survivors,
                proof,
                limits_reached: self.reached.clone(),
            });
        });
    }

    /// Goes on at the guard if it was told to end its tree. Says when to do so again.
    fn urge(&mut self, now: Instant) -> Option<Instant> {
        let asked = self.guarded.asked()?;
        let nudge_at = *self
            .nudge_at
            .get_or_insert_with(|| asked.since + self.nudge.next());
        if nudge_at <= now {
            if !matches!(self.patience, Patience::Outside(_)) {
                self.guard.signal(Signal::CONT);
            }
            self.guarded.pool.go_on();
            if let Some(room) = &self.room {
                // A frozen member cannot act on its TERM.
                room.thaw();
                if asked.kill_at.is_some_and(|at| at <= now) {
                    // The guard does so itself if it can.
                    room.kill();
                }
            }
            self.nudge_at = Some(now + self.nudge.next());
        }
        let give_up_at = asked
            .kill_at
            .and_then(|at| at.checked_add(self.guarded.kill_bound + MARGIN));
        if matches!(self.patience, Patience::Waiting) && give_up_at.is_some_and(|at| at <= now) {
            tracing::warn!("a guard does not answer; its tree is ended from outside");
            self.patience = Patience::Outside(Outside::from(now));
        }
        let next = match self.patience {
            Patience::Waiting => give_up_at,
            Patience::Outside(_) => self.end_from_outside(now),
            Patience::Killed { name_at } if now < name_at => Some(name_at),
            Patience::Killed { .. } => {
                self.name_guard();
                None
            }
            Patience::Heard | Patience::Over => None,
        };
        [next, self.nudge_at].into_iter().flatten().min()
    }

    /// Says when to go on.
    fn end_from_outside(&mut self, now: Instant) -> Option<Instant> {
        let Patience::Outside(outside) = &mut self.patience else {
            return None;
        };
        match outside.step(now, self.guarded.kill_bound, &*self.guard) {
            Outcome::Going { again_at, survivors } => {
                if let Some(survivors) = survivors {
                    tracing::warn!(?survivors, "processes survive SIGKILL; killing goes on");
                    self.end(None, survivors, Proof::NotProven);
                }
                Some(again_at)
            }
            Outcome::Calm => {
                self.guard.signal(Signal::KILL);
                let name_at = now + DYING;
                self.patience = Patience::Killed { name_at };
                Some(name_at)
            }
        }
    }

    /// A guard that a KILL does not end. Nobody was seen below it, and nobody can say that nobody is there.
    fn name_guard(&mut self) {
        self.patience = Patience::Over;
        if self.guard.has_exited() {
            return;
        }
        let survivors = vec![platform::describe(self.guard.guard)];
        tracing::warn!(?survivors, "a guard survives SIGKILL");
        self.end(None, survivors, Proof::NotProven);
    }
}

fn reached(hits: Hits, limits: &Limits) -> Vec<LimitReached> {
    let memory = limits.memory_bytes.filter(|_| hits.memory);
    let pids = limits.pids.filter(|_| hits.pids);
    let memory = memory.map(|bytes| LimitReached::Memory { bytes: bytes.get() });
    let pids = pids.map(|count| LimitReached::Pids { count: count.get() });
    memory.into_iter().chain(pids).collect()
}
