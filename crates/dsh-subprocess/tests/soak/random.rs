//! Many random trees.

use std::time::Duration;

use crate::common::run_within;
use crate::trees;

#[test]
fn two_hundred_random_trees_leave_nobody() {
    run_within(Duration::from_secs(150), trees::leave_nobody(1000..=1199));
}
