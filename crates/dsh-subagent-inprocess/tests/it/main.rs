//! Children whose driver the test plays.
#![expect(clippy::expect_used, reason = "a test helper that cannot go on ends the test")]

mod nursery;

mod forks;
mod runs;
mod starts;
mod structured;
