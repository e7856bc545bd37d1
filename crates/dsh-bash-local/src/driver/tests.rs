use std::future::pending;

use dsh_output::{OutputConfig, OutputLog};

use super::*;

const GRACE: Duration = Duration::from_secs(3);

/// A start that hangs; what becomes of it, and after how long.
async fn given_up_after(
    process: &LocalProcess,
    stop: &CancellationToken,
    hurry: &CancellationToken,
    grace: Duration,
) -> Duration {
    let begun = Instant::now();
    let started = started(pending::<()>(), process, stop, hurry, grace).await;
    assert!(started.is_none());
    begun.elapsed()
}

fn process() -> LocalProcess {
    LocalProcess::new(OutputLog::new(OutputConfig::default()))
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_is_given_up_on_after_the_grace_of_whoever_ends_it() {
    let (never, process) = (CancellationToken::new(), process());
    let hung = started(pending::<()>(), &process, &never, &never, GRACE);
    assert!(
        within(GRACE * 100, hung).await.is_none(),
        "nobody asked for the end"
    );
    process.terminate(EndReason::Asked);
    assert_eq!(given_up_after(&process, &never, &never, GRACE).await, GRACE);
    let short = Duration::from_millis(10);
    assert_eq!(given_up_after(&process, &never, &never, short).await, START);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_holds_up_no_shutdown() {
    let (stop, hurry, process) = (CancellationToken::new(), CancellationToken::new(), process());
    stop.cancel();
    assert_eq!(given_up_after(&process, &stop, &hurry, GRACE).await, GRACE);
    assert!(process.was_asked());
    hurry.cancel();
    assert_eq!(given_up_after(&process, &stop, &hurry, GRACE).await, LINGER);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_comes_within_the_grace_counts() {
    let (never, process) = (CancellationToken::new(), process());
    process.terminate(EndReason::Asked);
    // sleep: the clock is paused.
    let late = sleep(GRACE - Duration::from_millis(1));
    assert!(started(late, &process, &never, &never, GRACE).await.is_some());
}
