//! Facts polled with a deadline.

use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(5);

/// Polls `fact` until it is true, for at most 10 s, or 20 s when `DSH_TEST_SLOW` is set.
///
/// The deadline is of the real clock, also where tokio's is paused.
///
/// # Panics
///
/// At the deadline, naming `what` was waited for.
///
/// # Cancel safety
///
/// Only waits.
pub async fn eventually(what: &str, fact: impl FnMut() -> bool) {
    let slow = std::env::var_os("DSH_TEST_SLOW").is_some();
    eventually_within(what, Duration::from_secs(if slow { 20 } else { 10 }), fact).await;
}

/// Polls `fact` until it is true, for at most `limit`.
///
/// # Panics
///
/// At the deadline, naming `what` was waited for.
///
/// # Cancel safety
///
/// Only waits.
pub async fn eventually_within(what: &str, limit: Duration, mut fact: impl FnMut() -> bool) {
    let start = Instant::now();
    while !fact() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain for {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}
