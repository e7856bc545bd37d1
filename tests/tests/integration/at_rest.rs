//! What a harness costs whose commands do nothing.

#[tokio::test]
async fn a_hundred_silent_tasks_wake_nobody() {
    tests::rest::nobody_wakes(100).await;
}
