//! Commands that try to get away, or that end what watches them: what is said stays true, and nothing is left.

use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use nix::sys::signal::Signal;
use serde_json::json;
use tests::{Exit, Server, ServerOptions};

/// One process of every kind that other runners miss, each with its number in a file, and the shell that waits for them.
const FAMILY: [&str; 7] = ["plain", "nohup", "setsid", "orphan", "job", "deaf", "stopped"];
const FAMILY_COMMAND: &str = "
    sleep 60 & echo $! > plain
    nohup sleep 60 >/dev/null 2>&1 & echo $! > nohup
    setsid bash -c 'echo $$ > setsid; exec sleep 60' &
    (setsid bash -c 'echo $$ > orphan; exec sleep 60' >/dev/null 2>&1 &)
    set -m; sleep 60 & echo $! > job; set +m
    (trap '' TERM; echo $BASHPID > deaf; while :; do sleep 0.05; done) >/dev/null 2>&1 &
    sleep 60 & kill -STOP $!; echo $! > stopped
    (while :; do (setsid sleep 0.3 &); sleep 0.02; done) >/dev/null 2>&1 &
    wait";
const SHORT_GRACE: ServerOptions<'static> = ServerOptions {
    config: "[bash]\ngrace_ms = 300\n",
    env: &[],
    arguments: &[],
};

async fn family(server: &Server) -> Vec<u32> {
    let mut pids = Vec::new();
    for name in FAMILY {
        pids.push(server.room.pid(name).await);
    }
    pids
}

fn living(pids: &[u32]) -> Vec<u32> {
    pids.iter().copied().filter(|pid| !is_gone(*pid)).collect()
}

/// Whoever carries the room's mark and sleeps: the forks of a command, whatever became of them.
fn sleepers(server: &Server) -> Vec<u32> {
    let sleeps = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.starts_with(b"sleep\0"))
    };
    server.room.processes().into_iter().filter(sleeps).collect()
}

#[tokio::test]
async fn a_kill_ends_a_family_of_every_kind() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let id = server.background(FAMILY_COMMAND).await;
    let pids = family(&server).await;
    assert_eq!(living(&pids), pids);
    server.kill(&id).await;
    let end = server.wait(&id).await;
    assert_eq!((living(&pids), sleepers(&server)), (vec![], vec![]), "{end:?}");
    assert!(end.ok().ends_with("[status: killed, signal: SIGTERM]"), "{end:?}");
    server.close().await;
}

#[tokio::test]
async fn a_deadline_ends_a_family_of_every_kind() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let id = server
        .background_with(FAMILY_COMMAND, json!({"timeoutMs": 3000}))
        .await;
    let pids = family(&server).await;
    let end = server.wait(&id).await;
    assert_eq!((living(&pids), sleepers(&server)), (vec![], vec![]), "{end:?}");
    let line = "[status: killed, signal: SIGTERM; timed out after 3000ms]";
    assert!(end.ok().ends_with(line), "{end:?}");
    server.close().await;
}

#[tokio::test]
async fn a_foreground_timeout_ends_a_family_of_every_kind() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let arguments = json!({"command": FAMILY_COMMAND, "description": "d", "timeoutMs": 3000});
    let end = server.call("bash", arguments).await;
    let pids = family(&server).await;
    assert_eq!((living(&pids), sleepers(&server)), (vec![], vec![]), "{end:?}");
    assert!(end.ok().contains("[timed out after 3000ms]"), "{end:?}");
    server.close().await;
}

#[tokio::test]
async fn the_end_of_the_connection_ends_a_family_of_every_kind() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    server.background(FAMILY_COMMAND).await;
    let pids = family(&server).await;
    server.close().await;
    assert_eq!(living(&pids), [0; 0]);
}

#[tokio::test]
async fn what_a_trap_starts_in_answer_to_the_kill_is_ended_too() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let command =
        "trap 'setsid sleep 60 & echo $! > child; exit 0' TERM; echo > ready; while :; do sleep 0.02; done";
    let id = server.background(command).await;
    server.room.made("ready").await;
    server.kill(&id).await;
    let end = server.wait(&id).await;
    let child = server.room.pid("child").await;
    assert_eq!((living(&[child]), sleepers(&server)), (vec![], vec![]), "{end:?}");
    assert!(end.ok().ends_with("[status: killed, exit code: 0]"), "{end:?}");
    server.close().await;
}

#[tokio::test]
async fn c286_a_server_killed_in_the_middle_of_its_disposal_leaves_nothing() {
    let config = "[bash]\ngrace_ms = 60000\n";
    let mut server = Server::start_with(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .await;
    let command = "trap 'echo > asked' TERM; (trap '' TERM; setsid sleep 60) & echo $$ > shell; while :; do sleep 0.05; done";
    server.background(command).await;
    let shell = server.room.pid("shell").await;
    server.signal(Signal::SIGTERM);
    server.room.made("asked").await;
    assert!(!is_gone(shell), "the disposal waits for it");
    server.signal(Signal::SIGKILL);
    assert_eq!(server.exit().await, Exit::Signal(9));
    eventually("its command and its guards are gone", || {
        server.room.processes().is_empty()
    })
    .await;
}

#[tokio::test]
async fn a_foreground_command_that_kills_its_guard_is_told_with_what_was_found() {
    let mut server = Server::start().await;
    let reply = server
        .bash("setsid sleep 60 & echo $! > child; echo before; kill -9 $PPID; sleep 60")
        .await;
    assert_eq!(reply.error(), "before\n[guard lost; tree seen empty]");
    assert!(is_gone(server.room.pid("child").await));
    assert_eq!(server.bash("echo next").await.ok(), "next\n");
    server.close().await;
}

#[tokio::test]
async fn a_task_that_kills_its_guard_has_failed_and_has_no_exit_code() {
    let mut server = Server::start().await;
    let id = server
        .background("setsid sleep 60 & echo $! > child; kill -9 $PPID; sleep 60")
        .await;
    let end = server.wait(&id).await;
    assert_eq!(
        end.ok(),
        "(no new output)\n[status: failed, guard lost; tree seen empty]"
    );
    assert!(is_gone(server.room.pid("child").await));
    server.close().await;
}

#[tokio::test]
async fn an_end_that_nobody_could_see_is_told_as_not_proven() {
    let mut server = Server::start().await;
    let command = "read -r _ _ _ supervisor _ < /proc/$PPID/stat; kill -STOP $supervisor; \
                   kill -9 $PPID $supervisor; kill -9 $$";
    let reply = server.bash(command).await;
    // Whoever was seen just before it went is named; where commands have cgroups, the end was seen all the same.
    let said = reply.error();
    let is_told = said == "(no output)\n[guard lost; end of the tree not proven]"
        || said == "(no output)\n[guard lost; cgroup seen empty, end of the tree not proven]"
        || said.contains(" survived: ") && said.ends_with("\n[guard lost]");
    assert!(is_told, "{reply:?}");
    assert_eq!(server.list().await.ok(), "(no background tasks)");
    assert_eq!(server.bash("echo next").await.ok(), "next\n");
    server.close().await;
}

#[tokio::test]
async fn a_pattern_that_stands_in_the_command_does_not_end_its_shell() {
    let mut server = Server::start().await;
    let command = "sleep 60.7777 & echo $! > child; pkill -f 'sleep 60[.]7777|sleep 60.7777'; echo done";
    assert_eq!(server.bash(command).await.ok(), "done\n");
    assert!(is_gone(server.room.pid("child").await));
    server.close().await;
}
