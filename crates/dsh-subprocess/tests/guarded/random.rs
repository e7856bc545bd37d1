//! Some random trees; the long checks grow more of them.

use std::time::Duration;

use crate::common::run_within;
use crate::trees;

#[test]
fn random_trees_leave_nobody() {
    // A few seconds; the trees are nice, and other tests and a busy machine come first.
    run_within(
        Duration::from_secs(110),
        trees::leave_nobody("random_trees_leave_nobody", 1..=20),
    );
}
