//! Tasks that say nothing: whoever waits for one that hangs is told, once, where a deployment wants that.

use dsh_testkit::process::gone;
use serde_json::json;
use tests::{Server, ServerOptions};

const TOLD: ServerOptions<'static> = ServerOptions {
    config: "[tool_bash]\nstall_notice_ms = 300\n",
    env: &[],
};

#[tokio::test]
async fn a_silent_task_is_told_once_and_again_after_output() {
    let mut server = Server::start_with(TOLD).await;
    let command = "echo one; until [ -e go ]; do sleep 0.02; done; echo two; exec sleep 60";
    let id = server.background(command).await;
    let notice = |last: &str| {
        format!(
            "\nbackground task bash-1 (bash: {command}) has printed nothing for 300ms [status: running]. Read its \
             output with task_output, or stop it with task_kill.\nlast output:\n> {last}"
        )
    };
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
    // The call lasts longer than the silence, and the silent one ends in it: what is told is its end alone.
    let reply = server
        .bash(&format!(
            "sleep 1; kill {shell}; while [ -e /proc/{shell} ]; do :; done"
        ))
        .await;
    gone(shell).await;
    let mut told = reply.notices().to_vec();
    if told.is_empty() {
        told = server.told_by("task_list", json!({})).await.notices().to_vec();
    }
    let label = "bash: echo $$ > shell; exec sleep 60";
    let end = format!(
        "\nbackground task {id} ({label}) finished [status: killed, signal: SIGTERM]. Read its output with task_output."
    );
    assert_eq!(told, [end]);
    assert_eq!(server.list().await.texts.len(), 1);
    server.close().await;
}

#[tokio::test]
async fn unasked_for_silence_is_no_news() {
    let mut server = Server::start().await;
    server.background("exec sleep 60").await;
    server.bash("sleep 1").await;
    assert_eq!(server.list().await.texts.len(), 1);
    server.close().await;
}
