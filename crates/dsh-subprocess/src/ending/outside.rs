//! The end of those whom somebody else should have ended, and does not: they are killed until nobody but zombies is seen
//! for a while.

use std::time::{Duration, Instant};

use super::{Doomed, Killing};
use crate::facts::Member;

/// How long nobody must be seen. A look may miss who is just being born.
const CALM: Duration = Duration::from_millis(50);

/// A tree that is ended from outside.
pub(crate) struct Outside {
    killing: Killing,
    calm_since: Option<Instant>,
}

/// What came of a step.
pub(crate) enum Outcome {
    /// Somebody was seen not long ago: again at this time. Those who resist are named, once.
    Going {
        again_at: Instant,
        survivors: Option<Vec<Member>>,
    },
    /// Nobody is seen any more.
    Calm,
}

impl Outside {
    pub(crate) fn from(now: Instant) -> Outside {
        Outside {
            killing: Killing::from(now),
            calm_since: None,
        }
    }

    /// Kills, if it is time. After `bound` names who is left.
    pub(crate) fn step(&mut self, now: Instant, bound: Duration, doomed: &dyn Doomed) -> Outcome {
        let mut survivors = None;
        if now >= self.killing.again_at() {
            survivors = self.killing.step(now, bound, doomed);
            let nobody = doomed.left().is_empty();
            self.calm_since = nobody.then(|| self.calm_since.unwrap_or(now));
            if self.calm_since.is_some_and(|since| now >= since + CALM) {
                return Outcome::Calm;
            }
        }
        Outcome::Going {
            again_at: self.killing.again_at(),
            survivors: survivors.filter(|survivors| !survivors.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustix::process::Pid;

    use super::*;

    /// This process, as somebody whom no signal ends before a time.
    struct Resisting(Cell<bool>);

    impl Doomed for Resisting {
        fn kill(&self) {}

        fn left(&self) -> Vec<Pid> {
            self.0.get().then(rustix::process::getpid).into_iter().collect()
        }
    }

    #[test]
    fn who_resists_is_named_after_the_bound_and_may_go_later() {
        let start = Instant::now();
        let bound = Duration::from_secs(1);
        let somebody = Resisting(Cell::new(true));
        let mut outside = Outside::from(start);
        let mut step = |after| outside.step(start + after, bound, &somebody);
        let named = |outcome| match outcome {
            Outcome::Going { survivors, .. } => survivors.map(|members| members[0].pid),
            Outcome::Calm => panic!("somebody is left"),
        };
        assert_eq!(named(step(Duration::ZERO)), None);
        assert_eq!(named(step(bound)), Some(std::process::id()));
        assert_eq!(named(step(bound * 3)), None, "once");

        somebody.0.set(false);
        assert_eq!(named(step(bound * 5)), None, "a look may miss somebody");
        assert!(matches!(step(bound * 7), Outcome::Calm));
    }
}
