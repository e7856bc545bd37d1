//! However the connection ends, everything that it started ends with it.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::{Duration, Instant};

use dsh_testkit::eventually;
use dsh_testkit::process::{gone, is_gone};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::Signal;
use serde_json::json;
use tests::{Exit, Room, Server, ServerOptions};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

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
async fn a_signal_after_the_end_of_input_skips_the_grace() {
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
    server.close_input();
    server.room.made("told").await;
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit().await, Exit::Code(143));
    assert!(is_gone(shell));
    server.room.assert_empty();
}

#[tokio::test]
async fn a_killed_server_leaves_nothing_wherever_its_commands_went() {
    let mut server = Server::start().await;
    server
        .background("setsid sleep 60 & (setsid sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 1; done' &) ; echo $$ > shell; wait")
        .await;
    server.room.pid("shell").await;
    server.room.pid("child").await;
    server.signal(Signal::SIGKILL);
    assert_eq!(server.exit().await, Exit::Signal(9));
    eventually("its commands and their guards are gone", || {
        server.room.processes().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_command_that_leaves_its_group_ends_with_its_task() {
    let mut server = Server::start().await;
    let id = server
        .background("(echo a; timeout 60 setsid sleep 61; echo b) & setsid sleep 62 > /dev/null 2>&1 & echo $$ > shell; wait")
        .await;
    server.room.pid("shell").await;
    server.kill(&id).await;
    let end = server.wait(&id).await;
    assert!(end.ok().contains("[status: killed"), "{end:?}");
    assert!(
        server
            .room
            .processes()
            .iter()
            .all(|pid| *pid == server.pid() || !is_sleep(*pid)),
        "{end:?}"
    );
    server.close().await;
}

fn is_sleep(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.starts_with(b"sleep\x00"))
}

/// More log than any pipe holds, and nobody who reads it.
#[tokio::test]
async fn an_unread_log_holds_nothing_up() {
    let room = Room::new();
    let mut server = room
        .dsh()
        .arg("mcp")
        .env("RUST_LOG", "trace")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dsh starts");
    let mut input = server.stdin.take().expect("it is piped");
    let mut answers = BufReader::new(server.stdout.take().expect("it is piped")).lines();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "1"}}});
    let filler = "x".repeat(1000);
    let call = |id| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "no such tool", "arguments": {"filler": filler}}})
    };
    for message in std::iter::once(hello).chain((1..=200).map(call)) {
        input
            .write_all(format!("{message}\n").as_bytes())
            .await
            .expect("dsh reads");
        answers.next_line().await.expect("dsh writes").expect("an answer");
    }
    drop(input);
    assert_eq!(server.wait().await.expect("dsh ends").code(), Some(0));
    let mut unread = Vec::new();
    server
        .stderr
        .take()
        .expect("it is piped")
        .read_to_end(&mut unread)
        .await
        .expect("a log");
    assert!(unread.len() >= 32_000, "only {} bytes were logged", unread.len());
}

#[tokio::test]
async fn descriptors_that_do_not_block_are_served_too() {
    let room = Room::new();
    let (mut client, handed_over) = UnixStream::pair().expect("a pair");
    // Both ends of the pair do not block; what is handed over stays so.
    let handed_over = OwnedFd::from(handed_over.into_std().expect("a socket"));
    let output = handed_over.try_clone().expect("a copy");
    let seen_here = handed_over.try_clone().expect("a copy");
    let mut server = room
        .dsh()
        .arg("mcp")
        .stdin(handed_over)
        .stdout(output)
        .spawn()
        .expect("dsh starts");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    // A read before anything was sent would be told to try again, and that is not the end.
    eventually("the server waits for its input", || {
        !OFlag::from_bits_retain(fcntl(&seen_here, FcntlArg::F_GETFL).expect("flags"))
            .contains(OFlag::O_NONBLOCK)
    })
    .await;
    drop(seen_here);
    client
        .write_all(format!("{ping}\n").as_bytes())
        .await
        .expect("dsh reads");
    let mut client = BufReader::new(client).lines();
    let answer = client.next_line().await.expect("dsh writes").expect("an answer");
    assert!(answer.contains("\"id\":1"), "{answer}");
    drop(client);
    assert_eq!(server.wait().await.expect("dsh ends").code(), Some(0));
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
