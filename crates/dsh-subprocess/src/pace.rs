//! A delay that doubles up to a limit.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    delay: Duration,
    limit: Duration,
}

impl Pace {
    pub(crate) const fn new(first: Duration, limit: Duration) -> Pace {
        Pace { delay: first, limit }
    }

    /// The delay now; the next one is twice as long.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.delay;
        self.delay = (delay * 2).min(self.limit);
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_doubles_up_to_its_limit() {
        let mut pace = Pace::new(Duration::from_millis(3), Duration::from_millis(10));
        let delays = [(); 4].map(|()| pace.next().as_millis());
        assert_eq!(delays, [3, 6, 10, 10]);
    }
}
