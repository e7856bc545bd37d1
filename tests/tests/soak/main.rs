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
