//! Choices from a seed.

use std::time::Duration;

/// A stream of choices: the same seed, the same choices.
#[derive(Debug)]
pub(super) struct Dice(fastrand::Rng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Dice of their own for somebody who rolls at the same time as others.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.0.fork())
    }

    /// A number below `bound`, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    /// Whether something happens that happens so many times in a hundred.
    pub(super) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them, which are not none.
    pub(super) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// A time of less than so many milliseconds.
    pub(super) fn millis(&mut self, bound: usize) -> Duration {
        Duration::from_millis(self.below(bound) as u64)
    }
}
