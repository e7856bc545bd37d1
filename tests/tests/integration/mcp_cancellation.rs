//! `notifications/cancelled`: one call ends, and nothing else does.

use dsh_testkit::process::{gone, is_gone};
use serde_json::json;
use tests::{GATED, Server};

#[tokio::test]
async fn a_cancelled_wait_leaves_the_task_alive_and_its_end_still_to_be_told() {
    let mut server = Server::start().await;
    let id = server
        .background("echo $$ > pid; until [ -e go ]; do sleep 0.05; done; echo done")
        .await;
    let pid = server.room.pid("pid").await;
    let wait = server
        .send_call("task_output", json!({"task_id": id, "wait": true}))
        .await;
    server.list().await;
    server.cancel(wait).await;
    let list = server.list().await;
    assert!(list.ok().starts_with("bash-1 [bash] running"), "{list:?}");
    assert!(!is_gone(pid), "the task lives");

    server.room.go();
    let told = server
        .told_by("bash", json!({"command": "echo next", "description": "d"}))
        .await;
    assert_eq!(told.ok(), "next\n");
    assert_eq!(told.notices().len(), 1, "{told:?}");
    let notice = &told.notices()[0];
    assert!(notice.starts_with("\nbackground task bash-1 (bash: "), "{notice}");
    assert!(
        notice.contains("finished [status: completed, exit code: 0]. Read its output with task_output."),
        "{notice}"
    );
    assert_eq!(server.bash("echo again").await.notices(), [""; 0], "told once");
    assert!(!server.has_answered(wait), "a cancelled request gets no answer");
    server.close().await;
}

#[tokio::test]
async fn a_wait_cancelled_after_the_end_loses_nothing() {
    // The end and the cancellation race. An answer that came before the client cancelled is what tells the end; where
    // none comes, a notice does. One that crosses the cancellation on the wire is read by no client, and the server
    // cannot know: there a notice may follow, but never two.
    let mut server = Server::start().await;
    for round in 1..=10 {
        let id = server.background(&format!("{GATED}rm go")).await;
        let wait = server
            .send_call("task_output", json!({"task_id": id, "wait": true}))
            .await;
        server.list().await;
        server.room.go();
        server.bash(&format!("sleep 0.0{}", round % 5)).await;
        let answered_before = server.has_answered(wait);
        server.cancel(wait).await;
        server.until_resource_says(&id, "completed").await;
        let crossed = !answered_before && server.has_answered(wait);
        if !answered_before && !crossed {
            server.told_by("task_list", json!({})).await;
        }
        let notices = server.bash("sleep 0.1").await.notices().len() + server.list().await.notices().len();
        assert!(
            notices <= usize::from(crossed),
            "round {round}: {notices} notices too many (answered before: {answered_before}, crossed: {crossed})"
        );
    }
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_foreground_command_ends_with_its_whole_group() {
    let mut server = Server::start().await;
    let command = "sleep 60 & echo $! > child; echo $$ > shell; wait";
    let call = server
        .send_call("bash", json!({"command": command, "description": "stay"}))
        .await;
    let pids = [server.room.pid("shell").await, server.room.pid("child").await];
    server.cancel(call).await;
    for pid in pids {
        gone(pid).await;
    }
    assert_eq!(
        server.list().await.ok(),
        "(no background tasks)",
        "nothing is adopted from a cancelled call"
    );
    assert!(!server.has_answered(call));
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_call_ends_no_other() {
    let mut server = Server::start().await;
    server.background("echo $$ > task; exec sleep 60").await;
    let task = server.room.pid("task").await;
    let command =
        |name: &str| json!({"command": format!("echo $$ > {name}; exec sleep 60"), "description": "stay"});
    let first = server.send_call("bash", command("first")).await;
    let second = server.send_call("bash", command("second")).await;
    let (first_pid, second_pid) = (server.room.pid("first").await, server.room.pid("second").await);
    server.cancel(first).await;
    gone(first_pid).await;
    assert!(!is_gone(second_pid) && !is_gone(task));
    server.cancel(second).await;
    gone(second_pid).await;
    assert!(!is_gone(task));
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_command_that_ignores_the_signal_is_killed() {
    let mut server = Server::start().await;
    let command = "trap '' TERM; (sleep 60) & echo $$ > shell; wait; wait";
    let call = server
        .send_call("bash", json!({"command": command, "description": "stay"}))
        .await;
    let shell = server.room.pid("shell").await;
    server.cancel(call).await;
    gone(shell).await;
    server.close().await;
}

#[tokio::test]
async fn cancelling_what_is_not_there_is_harmless() {
    let mut server = Server::start().await;
    let done = server.send_call("task_list", json!({})).await;
    server.reply(done).await;
    server.cancel(done).await;
    server.cancel(4711).await;
    server.notify("notifications/cancelled", json!({})).await;
    server
        .notify("notifications/cancelled", json!({"requestId": {"no": "id"}}))
        .await;
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}

#[tokio::test]
async fn a_cancelled_start_is_either_refused_or_listed() {
    let mut server = Server::start().await;
    let arguments = json!({"command": "exec sleep 60", "description": "stay", "run_in_background": true});
    let call = server.send_call("bash", arguments).await;
    server.cancel(call).await;
    let list = server.list().await;
    let listed = list.ok() != "(no background tasks)";
    // A task that runs is one that the model can see and end.
    if listed {
        assert_eq!(
            server.kill("bash-1").await.ok(),
            "requested cancellation of task bash-1"
        );
    }
    server.close().await;
}
