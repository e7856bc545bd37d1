//! The core against a reference model that keeps one list of facts per task and no mechanism.
//!
//! The model knows bytes where the core has a cursor, and sets of claims where the core counts.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod reference;
mod steps;
mod subject;

use proptest::test_runner::Config;
use proptest_state_machine::prop_state_machine;

use subject::Subject;

prop_state_machine! {
    #![proptest_config(Config { cases: 400, max_shrink_iters: 20_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_order_of_operations_agrees_with_the_model(sequential 1..60 => Subject);
}
