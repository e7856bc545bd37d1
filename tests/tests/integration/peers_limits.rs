//! Limits that hold, and resources that come back.

use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use serde_json::json;
use tests::{Server, ServerOptions};

fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Children of a process that ended and were not waited for.
fn zombies(parent: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids: Vec<u32> = children
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    pids.into_iter()
        .filter(|pid| is_gone(*pid) && std::path::Path::new(&format!("/proc/{pid}")).exists())
        .count()
}

#[tokio::test]
async fn the_limit_refuses_and_never_ends_a_live_task() {
    let mut server = Server::start().await;
    let mut pids = Vec::new();
    for number in 1..=10 {
        server
            .background(&format!("echo $$ > pid.{number}; exec sleep 60"))
            .await;
        pids.push(server.room.pid(&format!("pid.{number}")).await);
    }
    let arguments = json!({"command": "true", "description": "d", "run_in_background": true});
    let refused = server.call("bash", arguments).await;
    for number in 1..=10 {
        assert!(refused.error().contains(&format!("bash-{number}")), "{refused:?}");
    }
    assert!(!pids.iter().any(|pid| is_gone(*pid)), "they all live");
    server.kill("bash-4").await;
    server.wait("bash-4").await;
    assert_eq!(
        server.background("true").await,
        "bash-11",
        "a free place, and no id was burned by the refusal"
    );
    server.close().await;
}

#[tokio::test]
async fn ended_tasks_take_no_place() {
    let config = "[tasks]\nmax_concurrent_tasks_per_owner = 1\n";
    let mut server = Server::start_with(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .await;
    for _ in 0..5 {
        let id = server.background("true").await;
        server.wait(&id).await;
    }
    server.close().await;
}

#[tokio::test]
async fn a_background_deadline_holds_and_is_named() {
    let mut server = Server::start().await;
    let id = server
        .background_with("echo $$ > pid; exec sleep 60", json!({"timeoutMs": 1500}))
        .await;
    let pid = server.room.pid("pid").await;
    let reply = server.wait(&id).await;
    assert_eq!(
        reply.ok(),
        "(no new output)\n[status: killed, signal: SIGTERM; timed out after 1500ms]"
    );
    assert!(is_gone(pid));
    server.close().await;
}

#[tokio::test]
async fn descriptors_and_children_come_back() {
    let mut server = Server::start().await;
    for _ in 0..3 {
        server.bash("true").await;
        let id = server.background("seq 1 50000").await;
        server.wait(&id).await;
    }
    let pid = server.pid();
    // Each kept record may keep its spilled output; nothing else stays open.
    let records = |open: usize, tasks: usize| open.saturating_sub(tasks);
    let before = records(descriptors(pid), 3);
    for _ in 0..20 {
        server.bash("true").await;
        let id = server.background("true").await;
        server.wait(&id).await;
    }
    eventually("descriptors are back", || descriptors(pid) <= before + 6).await;
    eventually("no child is left unwaited", || zombies(pid) == 0).await;
    server.close().await;
}

#[tokio::test]
async fn many_calls_at_once_are_all_served() {
    let mut server = Server::start().await;
    let mut calls = Vec::new();
    for number in 0..20 {
        let arguments = json!({"command": format!("echo {number}"), "description": "d"});
        calls.push(server.send_call("bash", arguments).await);
    }
    for (number, call) in calls.into_iter().enumerate() {
        assert_eq!(server.reply(call).await.ok(), format!("{number}\n"));
    }
    server.close().await;
}
