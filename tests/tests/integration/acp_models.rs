//! Which model answers a session of `dsh acp`.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::{Editor, Room, says};

const CONFIG: &str = r#"
    [model]
    provider = "scripted"
    name = "one.json"
    choices = ["two.json"]
"#;

fn option(answer: &Value) -> (&Value, Vec<&str>) {
    let option = &answer["configOptions"][0];
    let choices = option["options"].as_array().expect("choices").iter();
    let values = choices.map(|choice| choice["value"].as_str().expect("a value"));
    (&option["currentValue"], values.collect())
}

fn said(editor: &Editor) -> String {
    let updates = editor.seen.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect()
}

#[tokio::test]
async fn the_models_of_the_configuration_are_offered_and_a_choice_stays() {
    let room = Room::new();
    std::fs::write(room.home().join("config.toml"), CONFIG).expect("a file");
    room.script("one.json", json!([says("I am one.")]));
    room.script("two.json", json!([says("I am two."), says("Still two.")]));
    let mut editor = room.editor(&[], json!({})).await;
    let opened = editor.opens(&room).await;
    let all = vec!["scripted/one.json", "scripted/two.json"];
    assert_eq!(option(&opened), (&json!("scripted/one.json"), all.clone()));

    let session = &opened["sessionId"];
    let choose = |value: &str| json!({"sessionId": session, "configId": "model", "value": value});
    let refused = editor
        .call("session/set_config_option", choose("scripted/three.json"))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let chosen = editor
        .call("session/set_config_option", choose("scripted/two.json"))
        .await;
    assert_eq!(
        option(&chosen["result"]),
        (&json!("scripted/two.json"), all.clone())
    );
    editor.prompts(session, "who are you?").await;
    assert_eq!(said(&editor), "I am two.");
    let other = editor.opens(&room).await;
    assert_eq!(
        option(&other).0,
        "scripted/one.json",
        "another session has its own"
    );

    editor.call("session/close", json!({"sessionId": session})).await;
    let params = json!({"sessionId": session, "cwd": room.work(), "mcpServers": []});
    let loaded = editor.call("session/load", params).await;
    assert_eq!(option(&loaded["result"]), (&json!("scripted/two.json"), all));
    editor.seen.clear();
    editor.prompts(session, "and now?").await;
    assert_eq!(said(&editor), "Still two.");
}

#[tokio::test]
async fn a_choice_is_kept_before_a_model_is_asked() {
    let room = Room::new();
    std::fs::write(room.home().join("config.toml"), CONFIG).expect("a file");
    room.script("one.json", json!([says("I am one.")]));
    room.script("two.json", json!([says("I am two.")]));
    let mut editor = room.editor(&[], json!({})).await;
    let opened = editor.opens(&room).await;
    let session = &opened["sessionId"];
    editor.prompts(session, "who are you?").await;
    let choice = json!({"sessionId": session, "configId": "model", "value": "scripted/two.json"});
    editor.call("session/set_config_option", choice).await;
    editor.signal(Signal::SIGKILL);
    editor.exit_code().await;

    let mut editor = room.editor(&[], json!({})).await;
    let params = json!({"sessionId": session, "cwd": room.work(), "mcpServers": []});
    let loaded = editor.call("session/load", params).await;
    assert_eq!(option(&loaded["result"]).0, "scripted/two.json", "{loaded}");
    editor.seen.clear();
    editor.prompts(session, "and now?").await;
    assert_eq!(said(&editor), "I am two.");
}

#[tokio::test]
async fn a_session_in_which_only_a_model_was_chosen_is_not_kept() {
    let room = Room::new();
    std::fs::write(room.home().join("config.toml"), CONFIG).expect("a file");
    room.script("one.json", json!([]));
    room.script("two.json", json!([]));
    let mut editor = room.editor(&[], json!({})).await;
    let opened = editor.opens(&room).await;
    let session = &opened["sessionId"];
    let choice = json!({"sessionId": session, "configId": "model", "value": "scripted/two.json"});
    let chosen = editor.call("session/set_config_option", choice).await;
    assert_eq!(option(&chosen["result"]).0, "scripted/two.json");
    editor.call("session/close", json!({"sessionId": session})).await;
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(listed["result"]["sessions"], json!([]), "{listed}");
}
