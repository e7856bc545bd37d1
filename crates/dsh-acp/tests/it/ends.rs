//! How a connection ends, and that nothing is left of it.

use dsh_acp::Served;
use dsh_testkit::{eventually, process};
use serde_json::json;

use crate::editor::{Editor, House, runs, starts};

/// An editor with a task in the background of one session, and a command in the foreground of another.
async fn busy(house: &House) -> (Editor, i64) {
    let mut editor = house.session().await;
    editor.prompt("background").await;
    editor.open().await;
    let prompt = editor.begin("foreground").await;
    let [one, two] = ["one", "two"].map(|name| house.file(name));
    eventually("both run", || {
        process::read_pid(&one).is_some() && process::read_pid(&two).is_some()
    })
    .await;
    (editor, prompt)
}

fn house() -> House {
    House::new(json!([
        starts("echo $$ > one; exec sleep 300"),
        {"text": "ok"},
        runs("echo $$ > two; exec sleep 300"),
    ]))
}

fn assert_gone(house: &House) {
    for name in ["one", "two"] {
        let pid = process::read_pid(&house.file(name)).expect("it ran");
        assert!(process::is_gone(pid), "{name} is left");
    }
}

#[tokio::test]
async fn an_editor_that_leaves_takes_everything_along() {
    let house = house();
    let (mut editor, prompt) = busy(&house).await;
    editor.close_input();
    // What it asked is answered, if it still reads.
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "cancelled");
    editor.rest().await;
    assert_eq!(editor.served().await, Served::InputEnded);
    assert_gone(&house);
    assert!(house.core.context().tasks.list(None).is_empty());
}

#[tokio::test]
async fn an_editor_that_no_longer_reads_is_gone() {
    let house = house();
    let (mut editor, _) = busy(&house).await;
    editor.close_output();
    editor.request("authenticate", json!({"methodId": "x"})).await;
    assert_eq!(editor.served().await, Served::OutputFailed);
    assert_gone(&house);
}

#[tokio::test]
async fn the_caller_can_end_it() {
    let house = house();
    let (mut editor, prompt) = busy(&house).await;
    editor.stop.cancel();
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "cancelled");
    assert_eq!(editor.served().await, Served::Stopped);
    assert_gone(&house);
}

#[tokio::test]
async fn it_ends_with_the_services() {
    let house = house();
    let (mut editor, _) = busy(&house).await;
    house.core.shutdown().await;
    assert_eq!(editor.served().await, Served::Stopped);
    assert_gone(&house);
}

#[tokio::test]
async fn a_session_that_is_opened_while_all_are_closed_is_closed_too() {
    let house = House::new(json!([]));
    let mut editor = house.session().await;
    // The requests are taken in before the end of input is.
    for _ in 0..20 {
        let params = json!({"cwd": house.cwd(), "mcpServers": []});
        editor.request("session/new", params).await;
    }
    editor.close_input();
    assert_eq!(editor.served().await, Served::InputEnded);
    // Every agent that was made is gone: its scope would hold up the shutdown, and its name is free.
    let sessions: Vec<_> = editor.sessions().await;
    for session in sessions {
        let id = dsh_session::SessionId::new(session);
        assert!(house.core.context().agents.get(&id).is_none());
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_with_the_services() {
    let house = house();
    let (mut editor, _) = busy(&house).await;
    editor.drop_agent().await;
    house.core.shutdown().await;
    assert_gone(&house);
}

#[tokio::test]
async fn an_editor_that_reads_nothing_holds_nothing_up_at_the_end() {
    let big = "x".repeat(2_000);
    let house = House::new(json!([
        {"text": big.repeat(20)}, {"text": big}, {"text": big},
    ]));
    let mut editor = house.silent(64);
    let hello = editor.initialize(json!({})).await;
    assert!(hello["result"].is_object());
    editor.open().await;
    editor.begin("much").await;
    // It is being written, and nobody reads it.
    editor
        .update(|update| update["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.close_input();
    assert_eq!(editor.served().await, Served::InputEnded);
}

#[tokio::test]
async fn what_was_said_is_kept_when_the_editor_leaves_in_the_middle() {
    let house = House::new(json!([{"text": "I begin", "hang": true}]));
    let mut editor = house.session().await;
    let session = editor.session.clone();
    editor.begin("go").await;
    editor
        .update(|update| update["sessionUpdate"] == "agent_message_chunk")
        .await;
    editor.close_input();
    editor.rest().await;
    editor.served().await;
    let mut second = house.editor().await;
    second.loaded(&session).await;
    assert_eq!(second.text("user_message_chunk"), "go");
    assert_eq!(second.text("agent_message_chunk"), "I begin");
}

#[tokio::test]
async fn a_prompt_that_waits_when_its_session_is_closed_is_cancelled_and_kept() {
    let woken = json!({"text": "I am woken.", "hang": true});
    let gated = starts("until [ -e go ]; do sleep 0.02; done");
    let house = House::new(json!([gated, {"text": "It runs."}, woken]));
    let mut editor = house.session().await;
    editor.prompt("build").await;
    std::fs::write(house.file("go"), "").unwrap();
    editor
        .update(|update| update["content"]["text"] == "woken.")
        .await;
    let waiting = editor.begin("then test").await;
    let session = editor.session.clone();
    let closed = editor.call("session/close", json!({"sessionId": session})).await;
    assert!(closed["result"].is_object(), "{closed}");
    assert_eq!(editor.answer(waiting).await["result"]["stopReason"], "cancelled");
    editor.seen.clear();
    editor.loaded(&session).await;
    assert_eq!(editor.text("user_message_chunk"), "buildthen test");
}
