//! Limits that hold, and resources that come back.

use std::os::unix::fs::PermissionsExt;

use dsh_agent_core::{Config, Parts};
use dsh_subprocess::{Cgroups, GuardConfig, Launcher};
use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use serde_json::json;
use tests::{Harness, Server, ServerOptions};

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

/// Changes the soft limit of a process.
fn limit(pid: u32, what: &str, value: &str) {
    let mut prlimit = std::process::Command::new("prlimit");
    prlimit.args(["--pid", &pid.to_string(), &format!("--{what}={value}:")]);
    // A guard may go at any time.
    assert!(prlimit.status().expect("prlimit runs").success() || is_gone(pid));
}

fn mapped(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .expect("a size");
    size.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .expect("a number")
        * 1024
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"))
        .expect("it lives")
        .flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let pids = lists.flat_map(|list| {
        list.split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<_>>()
    });
    pids.collect()
}

/// A start that fails is told with its reason, in the foreground and in the background, and the next command works when
/// there is room again.
async fn fails_with(server: &mut Server, reason: &str) {
    let arguments = json!({"command": "echo hi", "description": "d"});
    let reply = server.call("bash", arguments).await;
    assert!(reply.error().contains(reason), "{reply:?}");
    let id = server.background("echo hi").await;
    let reply = server.wait(&id).await;
    assert!(reply.text().contains("[status: failed"), "{reply:?}");
    assert!(reply.text().contains(reason), "{reply:?}");
}

#[tokio::test]
async fn a_want_of_descriptors_fails_the_call_with_its_reason_and_passes() {
    let mut server = Server::start().await;
    server.bash("true").await;
    let pid = server.pid();
    // All these numbers are in use.
    limit(pid, "nofile", "8");
    fails_with(&mut server, "EMFILE").await;
    limit(pid, "nofile", "1000");
    assert_eq!(server.bash("echo hi").await.ok(), "hi\n");
    server.close().await;
}

/// A harness whose commands run under this helper. Without cgroups: a leader that is born into one needs no memory that
/// its guard has not.
fn harness_with(helper: &std::path::Path) -> Harness {
    let config = GuardConfig::helper(helper).cgroups(Cgroups::Off);
    let parts = Parts {
        launcher: Launcher::guarded(config).expect("the helper is there"),
        ..Parts::default()
    };
    Harness::with_parts(Config::default(), parts, std::env::temp_dir())
}

#[tokio::test]
async fn a_want_of_memory_fails_the_call_with_its_reason_and_passes() {
    let guard = std::env::var_os("DSH_GUARD").expect("the tests are run by xtask");
    let bash = json!({"command": "echo hi", "description": "d"});
    let harness = harness_with(guard.as_ref());
    harness.call("bash", bash.clone()).await.ok();
    let supervisor = children(std::process::id())[0];
    // A guard that has served a command gave back what it needs for the next one.
    let guards = children(supervisor);
    let needed = guards.into_iter().map(mapped).max().expect("there are guards");
    harness.core.shutdown().await;
    drop(harness);
    eventually("no supervisor", || is_gone(supervisor)).await;

    // Room for what a guard has, not for the stack that a new process starts on.
    let room = tempfile::tempdir().expect("a directory");
    let [helper, limit] = ["helper", "limit"].map(|name| room.path().join(name));
    std::fs::write(&limit, (needed / 1024).to_string()).expect("written");
    let script = format!(
        "#!/bin/bash\nulimit -Sv $(<{})\nexec -a dsh-guard-supervisor {}\n",
        limit.display(),
        guard.display()
    );
    std::fs::write(&helper, script).expect("written");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("made executable");
    let harness = harness_with(&helper);
    let reply = harness.call("bash", bash.clone()).await;
    assert!(reply.error().contains("ENOMEM"), "{reply:?}");
    let mut background = bash.clone();
    background["run_in_background"] = json!(true);
    harness.call("bash", background).await.ok();
    let reply = harness
        .call("task_output", json!({"task_id": "bash-1", "wait": true}))
        .await;
    assert!(reply.text().contains("[status: failed"), "{reply:?}");
    assert!(reply.text().contains("ENOMEM"), "{reply:?}");
    // There is memory for the next supervisor.
    std::fs::write(&limit, "unlimited").expect("written");
    for supervisor in children(std::process::id()) {
        let killed = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(supervisor.cast_signed()),
            nix::sys::signal::Signal::SIGKILL,
        );
        assert!(killed.is_ok() || is_gone(supervisor));
        eventually("no supervisor", || is_gone(supervisor)).await;
    }
    assert_eq!(harness.call("bash", bash).await.ok(), "hi\n");
    harness.core.shutdown().await;
}
