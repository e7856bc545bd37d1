//! A program killed at many moments.

use std::time::Duration;

use crate::common::{is_inside, run_within};
use crate::killed::{kill_starting, start_without_end};
use crate::trees::Numbers;

/// The longest that anything may be left: TERM, half a second, KILL.
const SOON: Duration = Duration::from_secs(1);
const MOMENTS: u64 = 100;

#[test]
fn a_program_killed_at_a_hundred_moments_leaves_nothing() {
    let name = "harness::a_program_killed_at_a_hundred_moments_leaves_nothing";
    if is_inside() {
        return start_without_end();
    }
    run_within(Duration::from_secs(150), async {
        let mut numbers = Numbers::new(7);
        let mut moment = || Duration::from_micros(numbers.below(40_000));
        let mut left = Vec::new();
        for _ in 0..MOMENTS / 2 {
            let both = tokio::join!(
                kill_starting(name, moment(), SOON),
                kill_starting(name, moment(), SOON)
            );
            left.extend([both.0, both.1]);
        }
        left.sort_unstable();
        println!(
            "left for: median {:?}, longest {:?}",
            left[left.len() / 2],
            left[left.len() - 1]
        );
    });
}
