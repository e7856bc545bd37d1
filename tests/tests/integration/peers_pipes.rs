//! Pipes that somebody holds open: a call returns in bounded time, with what was said so far.

use std::time::{Duration, Instant};

use serde_json::json;
use tests::Server;

/// Far below the time the holders sleep, far above what a busy machine needs.
const BOUND: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_background_child_that_holds_the_pipe_is_adopted() {
    let mut server = Server::start().await;
    let began = Instant::now();
    let reply = server.bash("sleep 60 & echo hi").await;
    assert!(began.elapsed() < BOUND, "took {:?}", began.elapsed());
    assert_eq!(
        reply.ok(),
        "hi\n[1 process still running; adopted as background task bash-1]"
    );
    server.close().await;
}

#[tokio::test]
async fn process_substitution_that_holds_the_pipe_is_adopted() {
    let mut server = Server::start().await;
    let began = Instant::now();
    let reply = server.bash("exec > >(tee log; sleep 60) 2>&1; echo hi").await;
    assert!(began.elapsed() < BOUND, "took {:?}", began.elapsed());
    assert!(
        reply
            .ok()
            .contains("still running; adopted as background task bash-1]"),
        "{reply:?}"
    );
    server.close().await;
}

#[tokio::test]
async fn later_output_of_an_adopted_child_arrives() {
    let mut server = Server::start().await;
    let reply = server
        .bash("(until [ -e go ]; do :; done; echo later) & echo now")
        .await;
    assert_eq!(
        reply.ok(),
        "now\n[1 process still running; adopted as background task bash-1]"
    );
    server.room.go();
    let reply = server.wait("bash-1").await;
    assert!(
        reply.ok().starts_with("later\n[status: completed, exit code: 0"),
        "{reply:?}"
    );
    server.close().await;
}

#[tokio::test]
async fn a_session_of_its_own_that_holds_the_pipe_is_adopted_and_can_be_killed() {
    let mut server = Server::start().await;
    let began = Instant::now();
    let reply = server.bash("setsid sleep 60 & echo $! > holder; until [ \"$(ps -o sid= -p $!)\" -eq $! ]; do :; done; echo hi").await;
    assert!(began.elapsed() < BOUND, "took {:?}", began.elapsed());
    assert_eq!(
        reply.ok(),
        "hi\n[1 process still running; adopted as background task bash-1]"
    );
    let holder = server.room.pid("holder").await;
    server.kill("bash-1").await;
    let end = server.wait("bash-1").await;
    assert!(
        end.ok()
            .ends_with("[status: killed, shell had exited with code 0]"),
        "{end:?}"
    );
    assert!(dsh_testkit::process::is_gone(holder));
    server.close().await;
}

#[tokio::test]
async fn cancelling_a_call_whose_pipe_is_held_is_bounded() {
    let mut server = Server::start().await;
    let command = "sleep 60 & echo $! > child; wait";
    let call = server
        .send_call("bash", json!({"command": command, "description": "d"}))
        .await;
    let child = server.room.pid("child").await;
    let began = Instant::now();
    server.cancel(call).await;
    dsh_testkit::process::gone(child).await;
    assert!(began.elapsed() < BOUND, "took {:?}", began.elapsed());
    server.close().await;
}
