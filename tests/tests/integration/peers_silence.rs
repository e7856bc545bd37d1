//! Tasks that say nothing: whoever waits for one that hangs is told, once, where a deployment wants that.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tests::{Server, ServerOptions};
use tokio::time::sleep;

const TOLD: ServerOptions<'static> = ServerOptions {
    config: "[tool_bash]\nstall_notice_ms = 700\n",
    env: &[],
    arguments: &[],
};

#[tokio::test]
async fn a_silent_task_is_told_once_and_again_after_output() {
    let mut server = Server::start_with(TOLD).await;
    let command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exec sleep 60";
    let id = server.background(command).await;
    let notice = |last: &str| {
        format!(
            "\nbackground task bash-1 (bash: {command}) has printed nothing for 700ms [status: running]. Read its \
             output with task_output, or stop it with task_kill.\nlast output:\n> {last}"
        )
    };
    // A shell that is slow to start is silent, too.
    server.until_resource_says(&id, "one").await;
    let reply = server.told_by("task_list", json!({})).await;
    assert_eq!(reply.notices(), [notice("one")]);
    for _ in 0..20 {
        assert_eq!(server.list().await.texts.len(), 1, "once");
    }
    server.room.go();
    let reply = server.told_by("task_list", json!({})).await;
    assert_eq!(reply.notices(), [notice("two")]);
    server.kill(&id).await;
    let end = server.wait(&id).await;
    assert_eq!(end.texts, ["one\ntwo\n[status: killed, signal: SIGTERM]"]);
    server.close().await;
}

#[tokio::test]
async fn an_end_is_told_without_the_silence_before_it() {
    let mut server = Server::start_with(TOLD).await;
    let id = server.background("echo $$ > shell; exec sleep 60").await;
    let shell = server.room.pid("shell").await;
    // sleep: a silence is a time. Nobody calls meanwhile, so it is not told.
    sleep(Duration::from_millis(1500)).await;
    kill(Pid::from_raw(shell.cast_signed()), Signal::SIGTERM).expect("it runs");
    server.until_resource_says(&id, "[status: killed").await;
    let reply = server.told_by("task_list", json!({})).await;
    let label = "bash: echo $$ > shell; exec sleep 60";
    let end = format!(
        "\nbackground task {id} ({label}) finished [status: killed, signal: SIGTERM]. Read its output with task_output."
    );
    assert_eq!(reply.notices(), [end]);
    assert_eq!(server.list().await.texts.len(), 1);
    server.close().await;
}

#[tokio::test]
async fn unasked_for_silence_is_no_news() {
    let mut server = Server::start().await;
    server.background("exec sleep 60").await;
    server.bash("sleep 1.5").await;
    assert_eq!(server.list().await.texts.len(), 1);
    server.close().await;
}
