//! However the connection ends, everything that it started ends with it.

use std::time::{Duration, Instant};

use dsh_testkit::process::{gone, is_gone};
use nix::sys::signal::Signal;
use serde_json::json;
use tests::{Exit, Room, Server, ServerOptions};

/// A command that stays until it is killed, with a child of its own.
const STAYS: &str = "sleep 60 & echo $! > child; echo $$ > shell; wait";
/// One that ignores the polite signal.
const STUBBORN: &str = "trap '' TERM; sleep 60 & echo $! > child; echo $$ > shell; wait; wait";

async fn with_work(command: &str) -> (Server, [u32; 2]) {
    let mut server = Server::start().await;
    server.background(command).await;
    let pids = [server.room.pid("shell").await, server.room.pid("child").await];
    (server, pids)
}

#[tokio::test]
async fn end_of_input_disposes_and_exits_with_0() {
    let (mut server, pids) = with_work(STAYS).await;
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    assert!(
        pids.into_iter().all(is_gone),
        "at exit everything is gone already"
    );
    server.room.assert_empty();
}

#[tokio::test]
async fn sigterm_disposes_and_exits_with_143() {
    let (mut server, pids) = with_work(STAYS).await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit().await, Exit::Code(143));
    assert!(pids.into_iter().all(is_gone));
    server.room.assert_empty();
}

#[tokio::test]
async fn sigint_disposes_and_exits_with_130() {
    let (mut server, pids) = with_work(STAYS).await;
    server.signal(Signal::SIGINT);
    assert_eq!(server.exit().await, Exit::Code(130));
    assert!(pids.into_iter().all(is_gone));
    server.room.assert_empty();
}

#[tokio::test]
async fn a_command_that_ignores_the_signal_is_killed_after_the_grace() {
    let (mut server, pids) = with_work(STUBBORN).await;
    let began = Instant::now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit().await, Exit::Code(143));
    assert!(began.elapsed() >= Duration::from_secs(2), "the grace was given");
    assert!(pids.into_iter().all(is_gone));
    server.room.assert_empty();
}

#[tokio::test]
async fn a_second_signal_skips_the_grace() {
    let config = "[bash]\ngrace_ms = 60000\n";
    let mut server = Server::start_with(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .await;
    server
        .background("trap 'echo > told' TERM; sleep 60 & echo $$ > shell; while :; do wait; done")
        .await;
    let shell = server.room.pid("shell").await;
    server.signal(Signal::SIGTERM);
    server.room.made("told").await;
    server.signal(Signal::SIGTERM);
    // The deadline for an exit is half the grace.
    assert_eq!(server.exit().await, Exit::Code(143));
    assert!(is_gone(shell));
    server.room.assert_empty();
}

#[tokio::test]
async fn a_client_that_vanishes_in_a_foreground_call_leaves_nothing() {
    let mut server = Server::start().await;
    let command = json!({"command": STAYS, "description": "stay"});
    server.send_call("bash", command).await;
    let pids = [server.room.pid("shell").await, server.room.pid("child").await];
    server.close_output();
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    assert!(pids.into_iter().all(is_gone));
    server.room.assert_empty();
}

#[tokio::test]
async fn a_client_that_no_longer_reads_leaves_nothing_either() {
    let (mut server, pids) = with_work(STAYS).await;
    server.close_output();
    // The write of this answer fails, which is the end of the connection though its input is open.
    server.send_call("task_list", json!({})).await;
    server.exit().await;
    assert!(pids.into_iter().all(is_gone));
    server.room.assert_empty();
}

#[tokio::test]
async fn end_of_input_ends_a_waiting_call_at_once() {
    let mut server = Server::start().await;
    server.background("echo $$ > shell; exec sleep 60").await;
    server.room.pid("shell").await;
    server
        .send_call(
            "task_output",
            json!({"task_id": "bash-1", "wait": true, "timeout_ms": 60000}),
        )
        .await;
    // A later answer shows that the wait was read before.
    server.list().await;
    let began = Instant::now();
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "took {:?}",
        began.elapsed()
    );
    server.room.assert_empty();
}

#[tokio::test]
async fn input_that_ends_in_the_middle_of_a_line_is_an_end() {
    let room = Room::new();
    let work = room.work();
    let mut server = Server::spawn(room, &work, ServerOptions::default());
    server.shake_hands().await;
    server.line("{\"jsonrpc\": \"2.0\",").await;
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    server.room.assert_empty();
}

#[tokio::test]
async fn end_of_input_before_the_handshake_is_an_end() {
    let room = Room::new();
    let work = room.work();
    let mut server = Server::spawn(room, &work, ServerOptions::default());
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    server.room.assert_empty();
}

#[tokio::test]
async fn adopted_processes_end_with_the_connection() {
    let mut server = Server::start().await;
    let reply = server
        .bash("sleep 60 >/dev/null 2>&1 & echo $! > child; echo started")
        .await;
    assert!(
        reply.ok().contains("adopted as background task bash-1"),
        "{reply:?}"
    );
    let child = server.room.pid("child").await;
    server.close_input();
    assert_eq!(server.exit().await, Exit::Code(0));
    gone(child).await;
    server.room.assert_empty();
}
