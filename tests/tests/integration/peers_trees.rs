//! Commands whose processes other runners left behind: the end of a task is the end of all of them.

use std::time::{Duration, Instant};

use dsh_testkit::process::{gone, group_members, is_gone};
use serde_json::json;
use tests::{Server, ServerOptions};

/// A grace that a test can wait for.
const SHORT_GRACE: ServerOptions<'static> = ServerOptions {
    config: "[bash]\ngrace_ms = 300\n",
    env: &[],
    arguments: &[],
};

/// Waits for the end and asserts that at that moment `pids` are gone: the status is a fact, not a wish.
async fn ends_with(server: &mut Server, id: &str, pids: &[u32], status: &str) {
    let reply = server.wait(id).await;
    let left: Vec<u32> = pids.iter().copied().filter(|pid| !is_gone(*pid)).collect();
    assert!(left.is_empty(), "{left:?} live on after {reply:?}");
    assert!(reply.ok().ends_with(status), "{reply:?}");
}

#[tokio::test]
async fn closing_the_session_ends_a_looping_command() {
    let mut server = Server::start().await;
    server
        .background("echo $$ > shell; while :; do date; sleep 1; done")
        .await;
    let shell = server.room.pid("shell").await;
    server.close().await;
    assert!(is_gone(shell));
}

#[tokio::test]
async fn a_timeout_ends_a_spinning_subshell() {
    let mut server = Server::start().await;
    let command = "( while :; do :; done ) & echo $! > child; wait";
    let reply = server
        .call(
            "bash",
            json!({"command": command, "description": "spin", "timeoutMs": 1500}),
        )
        .await;
    assert_eq!(
        reply.ok(),
        "(no output)\n[timed out after 1500ms]\n[killed by signal: SIGTERM]"
    );
    assert!(is_gone(server.room.pid("child").await));
    server.close().await;
}

#[tokio::test]
async fn a_timeout_ends_a_python_child() {
    let mut server = Server::start().await;
    let command = "echo begun; python3 -c 'import time; time.sleep(99)' & echo $! > child; wait";
    let reply = server
        .call(
            "bash",
            json!({"command": command, "description": "wait", "timeoutMs": 1000}),
        )
        .await;
    assert_eq!(
        reply.ok(),
        "begun\n[timed out after 1000ms]\n[killed by signal: SIGTERM]",
        "partial output is kept"
    );
    assert!(is_gone(server.room.pid("child").await));
    server.close().await;
}

#[tokio::test]
async fn many_spinning_children_are_one_adopted_task() {
    let mut server = Server::start().await;
    let command = "for i in 1 2 3 4 5; do sleep 60 >/dev/null & echo $! > child.$i; done";
    let reply = server.bash(command).await;
    assert_eq!(
        reply.ok(),
        "(no output)\n[5 processes still running; adopted as background task bash-1]"
    );
    let mut children = Vec::new();
    for number in 1..=5 {
        children.push(server.room.pid(&format!("child.{number}")).await);
    }
    assert!(!children.iter().any(|pid| is_gone(*pid)));
    server.kill("bash-1").await;
    ends_with(
        &mut server,
        "bash-1",
        &children,
        "[status: killed, shell had exited with code 0]",
    )
    .await;
    server.close().await;
}

#[tokio::test]
async fn what_shell_job_control_would_have_missed_is_found() {
    let mut server = Server::start().await;
    let reply = server
        .bash("yes >/dev/null & echo $! > child; sleep 0; kill %9; true")
        .await;
    let child = server.room.pid("child").await;
    assert!(
        reply
            .ok()
            .contains("[1 process still running; adopted as background task bash-1]"),
        "{reply:?}"
    );
    server.kill("bash-1").await;
    ends_with(
        &mut server,
        "bash-1",
        &[child],
        "[status: killed, shell had exited with code 0]",
    )
    .await;
    server.close().await;
}

#[tokio::test]
async fn after_killed_nothing_more_happens() {
    let mut server = Server::start().await;
    let id = server
        .background("echo $$ > shell; for i in $(seq 2000); do sleep 0.02; touch mark.$i; done")
        .await;
    let shell = server.room.pid("shell").await;
    server.room.made("mark.2").await;
    server.kill(&id).await;
    server.wait(&id).await;
    assert_eq!(group_members(shell), [0; 0], "nobody is left to do anything");
    server.close().await;
}

#[tokio::test]
async fn a_child_that_ignores_the_signal_is_ended_before_killed_is_said() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let command = "(trap '' TERM; echo > ready; exec sleep 60) >/dev/null 2>&1 & echo $! > child; wait";
    let id = server.background(command).await;
    let child = server.room.pid("child").await;
    server.room.made("ready").await;
    server.kill(&id).await;
    ends_with(&mut server, &id, &[child], "[status: killed, signal: SIGTERM]").await;
    server.close().await;
}

#[tokio::test]
async fn a_leader_that_leaves_at_once_does_not_call_off_the_kill() {
    let mut server = Server::start_with(SHORT_GRACE).await;
    let command = "trap 'exit 0' TERM; (trap '' TERM; echo > ready; exec sleep 60) >/dev/null 2>&1 & \
                   echo $! > child; wait";
    let id = server.background(command).await;
    let child = server.room.pid("child").await;
    server.room.made("ready").await;
    server.kill(&id).await;
    let reply = server.wait(&id).await;
    assert!(is_gone(child), "{reply:?}");
    server.close().await;
}

#[tokio::test]
async fn a_grandchild_of_a_plain_shell_is_ended() {
    let mut server = Server::start().await;
    let id = server
        .background("sh -c 'sleep 60 & echo $! > child; wait; true'")
        .await;
    let child = server.room.pid("child").await;
    server.kill(&id).await;
    ends_with(&mut server, &id, &[child], "[status: killed, signal: SIGTERM]").await;
    server.close().await;
}

#[tokio::test]
async fn a_server_started_with_an_ampersand_is_adopted() {
    let mut server = Server::start().await;
    let began = Instant::now();
    let reply = server
        .bash("python3 -m http.server --bind 127.0.0.1 0 & echo $! > child")
        .await;
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "took {:?}",
        began.elapsed()
    );
    assert!(
        reply
            .ok()
            .ends_with("still running; adopted as background task bash-1]"),
        "{reply:?}"
    );
    let list = server.list().await;
    let row = "bash-1 [bash] running, shell exited with code 0, ";
    assert!(list.ok().starts_with(row), "{list:?}");
    let child = server.room.pid("child").await;
    server.kill("bash-1").await;
    ends_with(
        &mut server,
        "bash-1",
        &[child],
        "[status: killed, shell had exited with code 0]",
    )
    .await;
    server.close().await;
}

#[tokio::test]
async fn a_command_that_puts_itself_in_the_background_stays_a_task() {
    let mut server = Server::start().await;
    let id = server
        .background("nohup sleep 60 >/dev/null 2>&1 & echo $! > child; echo up")
        .await;
    let child = server.room.pid("child").await;
    server
        .until_resource_says(&id, "shell exited with code 0, 1 process running")
        .await;
    let reply = server.output(&id).await;
    assert_eq!(
        reply.ok(),
        "up\n[status: running, shell exited with code 0, 1 process running]"
    );
    assert_eq!(reply.texts.len(), 1, "no end is told: {reply:?}");
    server.kill(&id).await;
    ends_with(
        &mut server,
        &id,
        &[child],
        "[status: killed, shell had exited with code 0]",
    )
    .await;
    server.close().await;
}

#[tokio::test]
async fn the_polite_signal_gives_time_to_clean_up() {
    let mut server = Server::start().await;
    let command =
        "trap 'echo cleaned; echo > cleaned; exit 0' TERM; echo > ready; while :; do sleep 0.05; done";
    let id = server.background(command).await;
    server.room.made("ready").await;
    server.kill(&id).await;
    let reply = server.wait(&id).await;
    assert!(server.room.file("cleaned").exists(), "{reply:?}");
    assert!(reply.ok().starts_with("cleaned\n"), "{reply:?}");
    server.close().await;
}

#[tokio::test]
async fn a_kill_answers_at_once_and_the_end_comes_later() {
    // The default grace: a look at the shell comes well before its end.
    let mut server = Server::start().await;
    let id = server
        .background("trap '' TERM; echo $$ > shell; while :; do sleep 60; done")
        .await;
    let shell = server.room.pid("shell").await;
    assert_eq!(
        server.kill(&id).await.ok(),
        "requested cancellation of task bash-1"
    );
    assert!(!is_gone(shell), "it was asked, and has not ended");
    ends_with(&mut server, &id, &[shell], "[status: killed, signal: SIGKILL]").await;
    server.close().await;
}

#[tokio::test]
async fn an_interrupted_call_leaves_background_tasks_and_a_kill_names_one() {
    let mut server = Server::start().await;
    for name in ["one", "two"] {
        server
            .background(&format!("echo $$ > {name}; exec sleep 60"))
            .await;
    }
    let (one, two) = (server.room.pid("one").await, server.room.pid("two").await);
    let call = server
        .send_call(
            "bash",
            json!({"command": "echo $$ > three; exec sleep 60", "description": "d"}),
        )
        .await;
    let three = server.room.pid("three").await;
    server.cancel(call).await;
    gone(three).await;
    assert!(!is_gone(one) && !is_gone(two));
    server.kill("bash-1").await;
    ends_with(&mut server, "bash-1", &[one], "[status: killed, signal: SIGTERM]").await;
    assert!(!is_gone(two));
    server.close().await;
}

#[tokio::test]
async fn a_signal_from_inside_the_command_is_named() {
    let mut server = Server::start().await;
    let reply = server.bash("echo before; kill -TERM $$; echo after").await;
    assert_eq!(reply.ok(), "before\n[killed by signal: SIGTERM]");
    server.close().await;
}
