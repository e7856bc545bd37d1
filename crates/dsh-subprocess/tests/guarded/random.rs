//! Some random trees; the long checks grow more of them.

use crate::common::run;
use crate::trees;

#[test]
fn random_trees_leave_nobody() {
    run(trees::leave_nobody("random_trees_leave_nobody", 1..=20));
}
