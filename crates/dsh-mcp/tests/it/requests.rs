//! Requests side by side, cancelled ones, and the end of a connection.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::{Client, Probe, core, texts};
use dsh_agent_core::Config;
use dsh_mcp::Served;
use dsh_testkit::{eventually, process};
use serde_json::json;

/// A command that tells its pid and that of a child, both of which would go on for ten minutes.
fn long_command(dir: &Path) -> String {
    let (shell, child) = (dir.join("shell"), dir.join("child"));
    format!(
        "sleep 600 & echo $! > {}; echo $$ > {}; wait",
        child.display(),
        shell.display()
    )
}

async fn pids(dir: &Path) -> [u32; 2] {
    let read = || {
        Some([
            process::read_pid(&dir.join("shell"))?,
            process::read_pid(&dir.join("child"))?,
        ])
    };
    eventually("the command to tell its pids", || read().is_some()).await;
    read().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_call_holds_back_no_other() {
    let mut client = Client::default().await;
    let task = client.background("sleep 600").await;
    let wait = client
        .start_call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    let second = client
        .start_call("task_output", json!({"task_id": task, "wait": true}))
        .await;
    assert_eq!(client.bash("echo beside").await, ["beside\n"]);
    client.call("task_kill", json!({"task_id": task})).await;
    for id in [wait, second] {
        let told = texts(&client.answer(id).await);
        assert!(told[0].ends_with("[status: killed, signal: SIGTERM]"), "{told:?}");
    }
    client.close_input();
    client.served().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_foreground_commands_run_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    let mut client = Client::default().await;
    // Each ends only when the other has begun.
    let meet = |mine: &Path, other: &Path| {
        format!(
            "touch {}; until [ -e {} ]; do sleep 0.02; done; echo met",
            mine.display(),
            other.display()
        )
    };
    let args = |command: String| json!({"command": command, "description": "meet"});
    let first = client.start_call("bash", args(meet(&a, &b))).await;
    let second = client.start_call("bash", args(meet(&b, &a))).await;
    for id in [first, second] {
        assert_eq!(texts(&client.answer(id).await), ["met\n"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_foreground_command_ends_with_its_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::default().await;
    let args = json!({"command": long_command(dir.path()), "description": "long"});
    let id = client.start_call("bash", args).await;
    let pids = pids(dir.path()).await;
    client.cancel(id).await;
    for pid in pids {
        process::gone(pid).await;
    }
    client.settle().await;
    assert!(!client.has_answer(id));
    assert_eq!(
        client.call("task_list", json!({})).await,
        ["(no background tasks)"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn end_of_input_in_the_middle_of_calls_leaves_no_process() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let core = core(Config::default());
    let mut client = Client::connected(core.clone()).await;
    let task = client.background(&long_command(dirs[0].path())).await;
    let args = json!({"command": long_command(dirs[1].path()), "description": "long"});
    client.start_call("bash", args).await;
    client
        .start_call(
            "task_output",
            json!({"task_id": task, "wait": true, "timeout_ms": 600_000}),
        )
        .await;
    let pids = [pids(dirs[0].path()).await, pids(dirs[1].path()).await].concat();
    let begun = Instant::now();
    client.close_input();
    assert_eq!(client.served().await, Served::InputEnded);
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "the end must not be drained: {:?}",
        begun.elapsed()
    );
    for pid in pids {
        assert!(process::is_gone(pid), "process {pid} outlived its connection");
    }
    assert!(core.context().tasks.list(None).is_empty());
    core.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_vanishes_without_closing_its_end_is_noticed_at_the_next_write() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::default().await;
    client.background(&long_command(dir.path())).await;
    let pids = pids(dir.path()).await;
    client.close_output();
    client.request("ping", json!({})).await;
    assert_eq!(client.served().await, Served::OutputFailed);
    for pid in pids {
        assert!(process::is_gone(pid));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_cannot_hold_the_end_up() {
    let core = core(Config::default());
    let big = Probe::offer(&core, "big", "x".repeat(100_000));
    big.gate.open();
    let mut client = Client::connected_with(core, 1024).await;
    for _ in 0..100 {
        client.start_call("big", json!({})).await;
    }
    big.entered.opened().await;
    let begun = Instant::now();
    client.close_input();
    assert_eq!(client.served().await, Served::InputEnded);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(big.delivered(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_and_shutdown_end_a_connection_like_the_end_of_input() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::default().await;
    client.background(&long_command(dir.path())).await;
    let ended = pids(dir.path()).await;
    client.stop.cancel();
    assert_eq!(client.served().await, Served::Stopped);
    assert!(ended.into_iter().all(process::is_gone));

    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::default().await;
    client.background(&long_command(dir.path())).await;
    let ended = pids(dir.path()).await;
    client.core.shutdown().await;
    assert!(ended.into_iter().all(process::is_gone));
    assert_eq!(client.served().await, Served::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_a_word_ends_cleanly() {
    let mut client = Client::silent(core(Config::default()), 1024);
    client.close_input();
    assert_eq!(client.served().await, Served::InputEnded);

    let mut client = Client::silent(core(Config::default()), 1024);
    client.stop.cancel();
    assert_eq!(client.served().await, Served::Stopped);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_see_only_their_own_tasks() {
    let core = core(Config::default());
    let mut mine = Client::connected(core.clone()).await;
    let mut theirs = Client::connected(core).await;
    let task = mine.background("sleep 600").await;
    assert_eq!(
        theirs.call("task_list", json!({})).await,
        ["(no background tasks)"]
    );
    let refused = theirs.call("task_kill", json!({"task_id": task})).await;
    assert_eq!(
        refused,
        [format!("Error: task {task} belongs to another session")]
    );
    theirs.close_input();
    theirs.served().await;
    assert!(mine.call("task_list", json!({})).await[0].starts_with(&format!("{task} [bash] running")));
    mine.close_input();
    mine.served().await;
}

/// How a shell user asks: everything at once, then the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_asked_before_the_end_of_input_is_still_answered() {
    let mut client = Client::silent(core(Config::default()), 1 << 16);
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "sh", "version": "1"}});
    let first = client.request("initialize", hello).await;
    let second = client.request("tools/list", json!({})).await;
    client.close_input();
    let rest = client.rest().await;
    let ids: Vec<_> = rest.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(first), json!(second)]);
    assert!(rest[1]["result"]["tools"].is_array());
    assert_eq!(client.served().await, Served::InputEnded);
}
