//! Calls and results, as an editor is shown them.

use serde_json::{Value, json};

use crate::editor::{House, calls, runs, starts};

async fn cards(capabilities: Value, turn: Value) -> (Value, Value) {
    let house = House::new(json!([turn, {"text": "done"}]));
    let mut editor = house.editor_with(capabilities).await;
    editor.open().await;
    assert_eq!(editor.prompt("go").await["result"]["stopReason"], "end_turn");
    let (begun, ended) = (editor.updates("tool_call"), editor.updates("tool_call_update"));
    assert_eq!((begun.len(), ended.len()), (1, 1), "{begun:#?} {ended:#?}");
    assert_eq!(begun[0]["toolCallId"], ended[0]["toolCallId"]);
    assert_eq!(begun[0]["status"], "in_progress");
    (begun[0].clone(), ended[0].clone())
}

#[tokio::test]
async fn a_command_is_a_terminal_for_an_editor_that_shows_them() {
    let capable = json!({"_meta": {"terminal_output": true}});
    let (begun, ended) = cards(capable, runs("echo hello; exit 3")).await;
    let id = &begun["toolCallId"];
    assert_eq!(begun["title"], "echo hello; exit 3");
    assert_eq!(begun["kind"], "execute");
    let content = begun["content"].as_array().unwrap();
    assert_eq!(
        content.last().unwrap(),
        &json!({"type": "terminal", "terminalId": id})
    );
    assert_eq!(&begun["_meta"]["terminal_info"]["terminal_id"], id);
    assert!(begun["_meta"]["terminal_info"]["cwd"].is_string());
    // An exit code that is not 0 is a result, no failure of the call.
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["_meta"]["terminal_output"]["terminal_id"], *id);
    assert!(
        ended["_meta"]["terminal_output"]["data"]
            .as_str()
            .unwrap()
            .starts_with("hello")
    );
    assert_eq!(
        ended["_meta"]["terminal_exit"],
        json!({"terminal_id": id, "exit_code": 3, "signal": null})
    );
    assert!(ended.get("content").is_none(), "the terminal stays: {ended}");
}

#[tokio::test]
async fn a_command_is_text_for_every_other_editor() {
    let (begun, ended) = cards(json!({"terminal": true}), runs("echo '```'; exit 3")).await;
    assert!(begun.get("_meta").is_none(), "{begun}");
    assert_eq!(
        begun["content"],
        json!([{"type": "content", "content": {"type": "text", "text": "test"}}])
    );
    let text = ended["content"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(text, "````console\n```\n[exit code: 3]\n````");
}

#[tokio::test]
async fn a_start_in_the_background_is_no_terminal() {
    let capable = json!({"_meta": {"terminal_output": true}});
    let (begun, ended) = cards(capable, starts("sleep 300")).await;
    assert_eq!(
        (&begun["title"], &begun["rawInput"]),
        (&json!("sleep 300"), &json!("sleep 300"))
    );
    assert_eq!((&begun["kind"], begun.get("_meta")), (&json!("execute"), None));
    let text = ended["content"][0]["content"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("```console\nstarted background task bash-1"),
        "{text}"
    );
    assert_eq!(ended.get("_meta"), None);
}

#[tokio::test]
async fn task_tools_have_titles_and_their_text() {
    let (begun, ended) = cards(json!({}), calls("task_list", json!({}))).await;
    assert_eq!(
        (&begun["title"], &begun["kind"]),
        (&json!("List background tasks"), &json!("read"))
    );
    assert_eq!(ended["content"][0]["content"]["text"], "(no background tasks)");
}

#[tokio::test]
async fn a_call_that_cannot_be_made_fails_in_its_card() {
    let (begun, ended) = cards(json!({}), calls("no_such_tool", json!({"a": 1}))).await;
    assert_eq!(
        (&begun["title"], &begun["rawInput"]),
        (&json!("no_such_tool"), &json!({"a": 1}))
    );
    assert_eq!(begun.get("kind"), None, "other is the default");
    assert_eq!(ended["status"], "failed");
    let text = ended["content"][0]["content"]["text"].as_str().unwrap();
    assert_eq!(text, "Error: unknown tool \"no_such_tool\"");

    let broken = json!({"tool_calls": [{"name": "bash", "arguments": "{not json"}]});
    let (begun, ended) = cards(json!({}), broken).await;
    assert_eq!(
        (&begun["title"], &ended["status"]),
        (&json!("bash"), &json!("failed"))
    );
}

#[tokio::test]
async fn ids_of_cards_are_never_used_twice() {
    let again = |command: &str| {
        let arguments = json!({"command": command, "description": "test"});
        json!({"tool_calls": [{"id": "same", "name": "bash", "arguments": arguments}]})
    };
    let house = House::new(json!([again("echo one"), again("echo two"), {"text": "done"}]));
    let mut editor = house.session().await;
    editor.prompt("go").await;
    let cards = editor.updates("tool_call");
    assert_eq!(cards.len(), 2);
    assert_ne!(cards[0]["toolCallId"], cards[1]["toolCallId"]);
}
