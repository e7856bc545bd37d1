//! Waiting with a limit.

use std::time::Duration;

/// Awaits a future for at most `limit`; `None` when the limit came first.
///
/// The future is polled before the clock is looked at, so what is ready is never refused, not even with a limit of
/// zero. A limit beyond what the clock can express means "for as long as it takes".
///
/// # Panics
///
/// Outside a tokio runtime with a timer.
///
/// # Cancel safety
///
/// Dropping this future, or reaching the limit, drops the inner one.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    tokio::time::timeout(limit, future).await.ok()
}
