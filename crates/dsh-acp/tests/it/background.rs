//! Background tasks and what an editor sees of them.

use serde_json::{Value, json};

use crate::editor::{Editor, House, starts};

fn sets(editor: &Editor) -> Vec<Value> {
    editor
        .updates("session_info_update")
        .iter()
        .map(|update| update["_meta"]["dsh/tasks"].clone())
        .collect()
}

#[tokio::test]
async fn an_end_is_a_row_and_the_agent_goes_on_by_itself() {
    let house = House::new(json!([
        starts("until [ -e go ]; do sleep 0.02; done; echo built"),
        {"text": "Started."},
        {"tool_calls": [{"name": "task_output", "arguments": {"task_id": "bash-1"}}]},
        {"text": "It is built.", "expect": ["built"]},
    ]));
    let mut editor = house.session().await;
    assert_eq!(editor.prompt("build").await["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "Started.");
    std::fs::write(house.file("go"), "").unwrap();
    // No prompt is in flight.
    editor
        .update(|update| {
            update["content"]["text"]
                .as_str()
                .is_some_and(|text| text.contains("It is built"))
        })
        .await;
    let rows = editor.updates("tool_call");
    let row = rows
        .iter()
        .find(|card| card["status"] == "completed")
        .expect("a row for the end");
    assert!(
        row["title"]
            .as_str()
            .unwrap()
            .ends_with("[status: completed, exit code: 0]"),
        "{row}"
    );
    assert!(
        row["content"][0]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("background task bash-1"),
        "{row}"
    );
    assert!(
        row["toolCallId"].as_str().unwrap().starts_with("notice-"),
        "{row}"
    );
    let read = rows
        .iter()
        .find(|card| card["kind"] == "read")
        .expect("the card of the read");
    assert_eq!(read["title"], "Read output from background task bash-1");
    assert_eq!(editor.text("user_message_chunk"), "");
}

#[tokio::test]
async fn the_set_of_live_tasks_is_metadata_of_the_session() {
    let house = House::new(json!([
        starts("until [ -e go ]; do sleep 0.02; done"),
        {"text": "Started."},
        {"text": "Ended."},
    ]));
    let mut editor = house.session().await;
    editor.prompt("start").await;
    editor
        .update(|update| {
            update["_meta"]["dsh/tasks"]
                .as_array()
                .is_some_and(|set| !set.is_empty())
        })
        .await;
    let running = sets(&editor).pop().unwrap();
    assert_eq!(
        (&running[0]["id"], &running[0]["kind"]),
        (&json!("bash-1"), &json!("bash"))
    );
    assert_eq!(running[0]["status"], "running");
    assert!(
        running[0]["label"].as_str().unwrap().starts_with("until"),
        "{running}"
    );
    assert!(running[0]["startedAt"].as_u64().is_some());
    std::fs::write(house.file("go"), "").unwrap();
    editor
        .update(|update| update["_meta"]["dsh/tasks"] == json!([]))
        .await;
}

#[tokio::test]
async fn a_turn_that_fails_by_itself_is_told() {
    for (capabilities, sort) in [
        (json!({"session": {"notices": {}}}), "notice"),
        (json!({}), "agent_message_chunk"),
    ] {
        let house = House::new(json!([
            starts("until [ -e go ]; do sleep 0.02; done"),
            {"text": "Started."},
            {"error": {"message": "the model is on holiday"}},
        ]));
        let mut editor = house.editor_with(capabilities).await;
        editor.open().await;
        editor.prompt("start").await;
        std::fs::write(house.file("go"), "").unwrap();
        let told = editor
            .update(|update| update["sessionUpdate"] == sort && update.to_string().contains("on holiday"))
            .await;
        assert!(told.to_string().contains("Turn failed"), "{told}");
    }
}

#[tokio::test]
async fn another_try_is_a_notice_for_editors_that_show_them() {
    let house = House::new(json!([
        {"error": {"message": "too busy", "code": "SERVER", "retry": "later"}},
        {"text": "Here."},
    ]));
    let mut editor = house.editor_with(json!({"session": {"notices": {}}})).await;
    editor.open().await;
    assert_eq!(editor.prompt("hello").await["result"]["stopReason"], "end_turn");
    let notices = editor.updates("notice");
    assert_eq!(notices.len(), 1, "{notices:#?}");
    assert_eq!(
        (&notices[0]["severity"], &notices[0]["description"]),
        (&json!("warning"), &json!("too busy"))
    );
    assert!(
        notices[0]["title"]
            .as_str()
            .unwrap()
            .starts_with("The model request failed; trying again in ")
    );
}
