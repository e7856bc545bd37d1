//! How a guard ends its tree, and how the supervisor ends what a guard left behind.
//!
//! Signals go to groups whose leader or member is an unreaped child of the caller, so that their number is
//! surely theirs, and to processes by a descriptor. Each group is within a session that some member opened, so
//! all of it is ours; the caller's own group is never signalled.

mod outside;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, waitid,
};

pub(crate) use self::outside::{Outcome, Outside};
use crate::cgroup::Cgroup;
use crate::facts::Member;
use crate::members::{Seen, group_of, own_children, walk};
use crate::pace::Pace;
use crate::platform;

/// KILL is repeated at this pace.
const PACE: Pace = Pace::new(Duration::from_millis(1), Duration::from_millis(20));
/// And at this one when survivors were named.
const SURVIVORS_PACE: Duration = Duration::from_secs(1);

/// How much later than survivors an end is told in which nobody is seen: whoever was killed just now is waited for first.
const UNSEEN: Duration = Duration::from_millis(500);

/// How often members are looked for who are to be told to end, while members exit all the time.
const PASSES: u32 = 16;

/// Whether the leader's number is surely its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leader {
    Unreaped,
    Reaped,
}

/// TERM and CONT, once, to everybody below this process.
///
/// First to the leader's group as a whole: no later command of a script starts. Then to each member outside.
pub(crate) fn term(leader: Pid, state: Leader) {
    // Each member takes a descriptor below. Whatever is started here was started with the old limit.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
    let before = members();
    let group = leader.as_raw_nonzero().get();
    let pinned = match state {
        Leader::Unreaped => group_of(leader) == Some(group),
        Leader::Reaped => own_children()
            .into_iter()
            .any(|child| group_of(child) == Some(group)),
    };
    if pinned {
        let _ = kill_process_group(leader, Signal::TERM);
        let _ = kill_process_group(leader, Signal::CONT);
    }
    let told_as_group = |member: &Seen| pinned && member.status.group == group;
    let mut told = HashSet::new();
    let mut tell = |member: &Seen| {
        if !told_as_group(member) && told.insert(member.pid) {
            member.signal(Signal::TERM);
            member.signal(Signal::CONT);
        }
    };
    before.iter().for_each(&mut tell);
    // Again for whoever was missed: it was just being born, or it was in the group when it was met and left before the
    // group was told; and again for whoever was below somebody who exited meanwhile, of whom there are many now.
    let mut exited = HashSet::new();
    for _ in 0..PASSES {
        let met = walk(&|_| false, &mut |member| tell(&member));
        let before = exited.len();
        exited.extend(met);
        if exited.len() == before {
            return;
        }
    }
}

/// Whom KILLs are for.
pub(crate) trait Doomed {
    fn kill(&self);

    /// Who can still be seen.
    fn left(&self) -> Vec<Pid>;
}

/// Everybody in this cgroup, and everybody below this process but its children that are spared.
pub(crate) struct Below<'a> {
    pub(crate) cgroup: Option<&'a Cgroup>,
    pub(crate) spared: &'a dyn Fn(Pid) -> bool,
}

impl Doomed for Below<'_> {
    fn kill(&self) {
        // The cgroup first: whoever forks without end is ended at once by that.
        if let Some(cgroup) = self.cgroup {
            cgroup.kill();
        }
        kill(self.spared);
    }

    fn left(&self) -> Vec<Pid> {
        let mut left: Vec<_> = self.cgroup.map(Cgroup::members).unwrap_or_default();
        walk(self.spared, &mut |member| left.push(member.pid));
        // Nobody is met without a descriptor, nor who is hidden from this process (`hidepid`). Its own children it knows.
        let children = own_children();
        left.extend(
            children
                .into_iter()
                .filter(|child| !(self.spared)(*child) && is_there(*child)),
        );
        left.sort_unstable_by_key(|pid| pid.as_raw_nonzero());
        left.dedup();
        left
    }
}

impl Doomed for Cgroup {
    fn kill(&self) {
        self.kill();
    }

    fn left(&self) -> Vec<Pid> {
        self.members()
    }
}

/// The KILLs, until somebody sees that nobody is left.
pub(crate) struct Killing {
    since: Instant,
    again_at: Instant,
    pace: Pace,
    named: bool,
}

impl Killing {
    pub(crate) fn from(now: Instant) -> Killing {
        Killing {
            since: now,
            again_at: now,
            pace: PACE,
            named: false,
        }
    }

    pub(crate) fn again_at(&self) -> Instant {
        self.again_at
    }

    /// Kills, if it is time. Once, after `bound`, names who is left.
    pub(crate) fn step(&mut self, now: Instant, bound: Duration, doomed: &dyn Doomed) -> Option<Vec<Member>> {
        if now < self.again_at {
            return None;
        }
        doomed.kill();
        let elapsed = now.duration_since(self.since);
        let delay = if self.named {
            SURVIVORS_PACE
        } else {
            self.pace.next()
        };
        self.again_at = now + delay;
        if self.named || elapsed < bound {
            return None;
        }
        let left = doomed.left();
        self.named = !left.is_empty() || elapsed >= bound.saturating_add(UNSEEN);
        self.named
            .then(|| left.into_iter().map(platform::describe).collect())
    }
}

/// Everybody below this process, each with an open descriptor.
fn members() -> Vec<Seen> {
    let mut members = Vec::new();
    walk(&|_| false, &mut |seen| members.push(seen));
    members
}

fn kill(spared: &dyn Fn(Pid) -> bool) {
    let mut groups = HashSet::new();
    for child in own_children().into_iter().filter(|child| !spared(*child)) {
        let group = group_of(child)
            .and_then(Pid::from_raw)
            .filter(|group| may_kill(*group));
        match group {
            Some(group) if groups.insert(group) => drop(kill_process_group(group, Signal::KILL)),
            Some(_) => {}
            None => drop(kill_process(child, Signal::KILL)),
        }
    }
    walk(spared, &mut |member| member.signal(Signal::KILL));
}

/// Whether a child of this process has not exited.
fn is_there(child: Pid) -> bool {
    let every_kind = WaitIdOptions::from_bits_retain(libc::__WALL.cast_unsigned());
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | every_kind;
    matches!(waitid(WaitId::Pid(child), options), Ok(None))
}

fn may_kill(group: Pid) -> bool {
    group != Pid::INIT && group_of(getpid()) != Some(group.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_named_at_the_bound_when_nobody_is_seen() {
        let start = Instant::now();
        let bound = Duration::from_secs(1);
        let mut killing = Killing::from(start);
        let nobody = Below {
            cgroup: None,
            spared: &|_| true,
        };
        let mut step = |elapsed| killing.step(start + elapsed, bound, &nobody);
        assert_eq!(step(bound), None);
        assert_eq!(step(bound + UNSEEN), Some(Vec::new()));
        assert_eq!(step(bound + UNSEEN * 2), None, "once");
    }
}
