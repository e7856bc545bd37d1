//! The long checks of the whole: what only time and numbers show.

use std::time::Duration;

#[tokio::test]
async fn a_minute_of_three_floods_keeps_the_server_small() {
    tests::output::three_floods(Duration::from_secs(60)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_thousand_polled_ends_lose_and_repeat_nothing() {
    tests::output::polls_at_the_end(5_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_tasks_at_once_hold_and_end() {
    tests::crowds::tasks_at_once(10_000).await;
}

#[tokio::test]
async fn a_thousand_live_commands_hold_and_leave_nothing() {
    tests::crowds::commands_at_once(1_000).await;
}
