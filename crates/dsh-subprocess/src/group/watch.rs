//! One watched tree.
//!
//! Cheap at rest: while the leader lives its exit descriptor is all that is waited for. After that one
//! living member, the *witness*, is: while it lives in the group the group is not empty, and nobody else
//! has to be looked at. All that is polled is whether the witness has left the group.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitIdStatus};

use super::{Grouped, Stop};
use crate::facts::{LeaderExit, Member, Proof, Signal, TreeEnd};
use crate::feed::{Fed, Feed};
use crate::keeper::{Progress, Watched};
use crate::pace::Pace;
use crate::platform::{self, Look};
use crate::wait::is_readable;

/// A leader without an exit descriptor is asked at this pace.
const ASK: Pace = Pace::new(Duration::from_millis(1), Duration::from_millis(20));
/// A witness is checked, and a group that shows nobody is looked at, at this pace: at most twice a second
/// in the long run.
const CHECK: Pace = Pace::new(Duration::from_millis(2), Duration::from_millis(500));
/// Members that end one after the other make for a look each, but at most at this pace.
const LOOK: Pace = Pace::new(Duration::from_millis(1), Duration::from_millis(20));
/// After a rest this long, members that end are looked at without delay again.
const REST: Duration = Duration::from_millis(200);
/// KILL is repeated at this pace.
const KILL: Pace = Pace::new(Duration::from_millis(1), Duration::from_millis(50));
/// And at this one when survivors were named.
const KILL_SURVIVORS: Duration = Duration::from_secs(1);

/// A tree, as the watching thread sees it.
pub(super) struct Ward {
    tree: Arc<Grouped>,
    feed: Option<Feed>,
    leader_exit: Option<Arc<OwnedFd>>,
    ask: Pace,
    watch: Watch,
    look: Pace,
    looked_at: Option<Instant>,
    check: Pace,
    kill: Pace,
    killing_since: Option<Instant>,
    kill_again_at: Option<Instant>,
    survivors_named: bool,
}

/// What tells us that the group is not empty.
enum Watch {
    /// The leader lives.
    Leader,
    /// It has exited; look at the group at this time.
    Group { at: Instant },
    /// A member lives. It is checked at this time.
    Witness {
        pid: Pid,
        exit: OwnedFd,
        check_at: Instant,
    },
}

impl Watched for Ward {
    fn step(&mut self, now: Instant) -> Progress {
        if self
            .feed
            .as_mut()
            .is_some_and(|feed| matches!(feed.write(), Fed::All))
        {
            self.feed = None;
        }
        // Emptiness before the KILL: a group that went in time is not signalled again.
        let Some(look) = self.observe(now) else {
            return Progress::Gone;
        };
        let kill = self.kill_when_due(now);
        Progress::Waiting([look, kill].into_iter().flatten().min())
    }

    fn poll_descriptors<'a>(&'a self, descriptors: &mut Vec<PollFd<'a>>) {
        if let Some(feed) = &self.feed {
            descriptors.push(PollFd::from_borrowed_fd(feed.as_fd(), PollFlags::OUT));
        }
        let exit = match &self.watch {
            Watch::Leader => self.leader_exit.as_deref(),
            Watch::Group { .. } => None,
            Watch::Witness { exit, .. } => Some(exit),
        };
        if let Some(exit) = exit {
            descriptors.push(PollFd::from_borrowed_fd(exit.as_fd(), PollFlags::IN));
        }
    }
}

impl Ward {
    pub(super) fn new(tree: Arc<Grouped>, feed: Option<Feed>) -> Ward {
        let leader_exit = tree.group.leader_process();
        Ward {
            tree,
            feed,
            leader_exit,
            ask: ASK,
            watch: Watch::Leader,
            look: LOOK,
            looked_at: None,
            check: CHECK,
            kill: KILL,
            killing_since: None,
            kill_again_at: None,
            survivors_named: false,
        }
    }

    /// `None` when the tree is over, else when to observe again.
    fn observe(&mut self, now: Instant) -> Option<Option<Instant>> {
        if matches!(self.watch, Watch::Leader) {
            let Some(exit) = self.leader_exited() else {
                return Some(self.leader_exit.is_none().then(|| now + self.ask.next()));
            };
            self.leader_exit = None;
            self.tree.status.send_modify(|status| status.leader = Some(exit));
            if !platform::LEADER_HOLDS_GROUP {
                self.tree.group.reap();
            }
            self.watch = Watch::Group { at: now };
        }
        if !self.tree.group.is_held() {
            self.let_go();
            return None;
        }
        self.check_witness(now);
        self.look_when_due(now)
    }

    fn leader_exited(&self) -> Option<LeaderExit> {
        match self.tree.group.leader_status() {
            Ok(status) => status.as_ref().map(leader_exit),
            Err(Errno::INTR) => None,
            Err(_) => Some(LeaderExit::Lost),
        }
    }

    /// A witness that exited or left the group calls for a look at the group.
    fn check_witness(&mut self, now: Instant) {
        let Watch::Witness { pid, exit, check_at } = &mut self.watch else {
            return;
        };
        if is_readable(exit, Duration::ZERO) {
            let at = self.next_look(now);
            self.watch = Watch::Group { at };
        } else if now >= *check_at {
            if platform::is_member(*pid, self.tree.group.leader()) {
                *check_at = now + self.check.next();
            } else {
                self.watch = Watch::Group { at: now };
            }
        }
    }

    /// Now, unless members end one after the other.
    fn next_look(&mut self, now: Instant) -> Instant {
        let Some(looked_at) = self.looked_at else {
            return now;
        };
        if now.duration_since(looked_at) > REST {
            self.look = LOOK;
        }
        now.max(looked_at + self.look.next())
    }

    fn look_when_due(&mut self, now: Instant) -> Option<Option<Instant>> {
        match &self.watch {
            Watch::Leader => return Some(None),
            Watch::Witness { check_at, .. } => return Some(Some(*check_at)),
            Watch::Group { at } if now < *at => return Some(Some(*at)),
            Watch::Group { .. } => {}
        }
        let seen = platform::look(self.tree.group.leader());
        if seen.is_empty() {
            self.tree.group.release();
            self.end(TreeEnd {
                leader: self.leader(),
                survivors: Vec::new(),
                proof: Proof::Group,
                limits_reached: Vec::new(),
            });
            return None;
        }
        self.looked_at = Some(now);
        let at = now + self.check.next();
        let witness = seen
            .living
            .iter()
            .find_map(|pid| Some((*pid, platform::exit_descriptor(*pid)?)));
        self.watch = match witness {
            Some((pid, exit)) => Watch::Witness {
                pid,
                exit,
                check_at: at,
            },
            None => Watch::Group { at },
        };
        Some(Some(at))
    }

    /// When the next KILL is due, if one is.
    fn kill_when_due(&mut self, now: Instant) -> Option<Instant> {
        match self.tree.group.stop() {
            Stop::No => return None,
            Stop::Grace { kill_at } if kill_at.is_none_or(|at| now < at) => return kill_at,
            Stop::Grace { .. } | Stop::Kill => {}
        }
        if let Some(next) = self.kill_again_at.filter(|next| now < *next) {
            return Some(next);
        }
        self.tree.group.kill();
        let since = *self.killing_since.get_or_insert(now);
        if !self.survivors_named && now.duration_since(since) >= self.tree.kill_bound {
            self.name_survivors();
        }
        let delay = if self.survivors_named {
            KILL_SURVIVORS
        } else {
            self.kill.next()
        };
        self.kill_again_at = Some(now + delay);
        self.kill_again_at
    }

    fn name_survivors(&mut self) {
        let look = platform::look(self.tree.group.leader());
        if look.is_empty() {
            // They went just now; the next look at the group says so.
            return;
        }
        self.survivors_named = true;
        let survivors = described(look);
        let pid = self.tree.group.leader();
        self.end(TreeEnd {
            leader: self.leader(),
            survivors: survivors.clone(),
            proof: Proof::NotProven,
            limits_reached: Vec::new(),
        });
        tracing::warn!(%pid, ?survivors, "processes survive SIGKILL; killing goes on");
    }

    /// The leader was reaped by somebody else, so the number may be a stranger's from now on: the group
    /// cannot be signalled, only shown.
    fn let_go(&mut self) {
        self.tree.group.release();
        let survivors = described(platform::look(self.tree.group.leader()));
        let pid = self.tree.group.leader();
        self.end(TreeEnd {
            leader: self.leader(),
            survivors: survivors.clone(),
            proof: Proof::NotProven,
            limits_reached: Vec::new(),
        });
        tracing::warn!(%pid, ?survivors, "another part of the program reaped the leader; its group is not ours to end");
    }

    fn leader(&self) -> Option<LeaderExit> {
        self.tree.status.borrow().leader
    }

    fn end(&self, end: TreeEnd) {
        self.tree.status.send_modify(|status| status.end = Some(end));
    }
}

fn described(look: Look) -> Vec<Member> {
    look.living.into_iter().map(platform::describe).collect()
}

fn leader_exit(status: &WaitIdStatus) -> LeaderExit {
    if let Some(code) = status.exit_status() {
        return LeaderExit::Code(code);
    }
    match status.terminating_signal() {
        Some(number) => LeaderExit::Signal {
            signal: Signal::new(number),
            core_dumped: status.dumped(),
        },
        None => LeaderExit::Lost,
    }
}

#[cfg(test)]
mod tests;
