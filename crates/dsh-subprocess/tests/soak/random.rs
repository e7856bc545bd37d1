//! Many random trees, other ones each time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::run_within;
use crate::trees;

const TREES: u64 = 200;

#[test]
fn two_hundred_random_trees_leave_nobody() {
    // In seconds, so that a run can be repeated with what it printed.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let first = std::env::var("DSH_TEST_SEED").map_or(now, |seed| seed.parse().unwrap());
    let seeds = first..=first + TREES - 1;
    run_within(
        Duration::from_secs(150),
        trees::leave_nobody("two_hundred_random_trees_leave_nobody", seeds),
    );
}
