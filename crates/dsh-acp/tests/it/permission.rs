//! Calls that the person at the editor is asked about.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_tools::{CallPolicy, PendingCall, Verdict};
use serde_json::{Value, json};

use crate::editor::{Editor, House, calls, runs};

/// Has every call asked for.
struct Ask;

#[async_trait]
impl CallPolicy for Ask {
    async fn before(&self, _: &PendingCall) -> Verdict {
        Verdict::Ask
    }
}

async fn asked(command: &str) -> (House, Editor, i64, Value) {
    let house = House::new(json!([runs(command), {"text": "done"}]));
    let context = house.core.context();
    context.tools.policy(&context.scope, Arc::new(Ask)).unwrap();
    let mut editor = house.session().await;
    let prompt = editor.begin("go").await;
    let question = editor.question().await;
    (house, editor, prompt, question)
}

async fn say(editor: &mut Editor, question: &Value, outcome: Value) {
    let id = &question["id"];
    editor
        .send(json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
        .await;
}

#[tokio::test]
async fn a_call_is_asked_for_with_its_card_and_runs_when_allowed() {
    let (house, mut editor, prompt, question) = asked("touch ran").await;
    assert_eq!(question["method"], "session/request_permission");
    let params = &question["params"];
    assert_eq!(params["sessionId"], *editor.session);
    let shown = editor.updates("tool_call");
    assert_eq!(shown.len(), 1, "the card comes before the question");
    assert_eq!(params["toolCall"]["toolCallId"], shown[0]["toolCallId"]);
    assert_eq!(params["toolCall"]["title"], "touch ran");
    let kinds: Vec<_> = params["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| &option["kind"])
        .collect();
    assert_eq!(kinds, ["allow_once", "reject_once"]);
    assert!(!house.file("ran").exists());
    say(
        &mut editor,
        &question,
        json!({"outcome": "selected", "optionId": "allow"}),
    )
    .await;
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");
    assert!(house.file("ran").exists());
}

#[tokio::test]
async fn a_call_that_works_elsewhere_says_where() {
    for (workdir, said) in [("/", Some("in /")), (".", None)] {
        for background in [false, true] {
            let arguments = json!({
                "command": "true", "description": "test", "workdir": workdir, "run_in_background": background,
            });
            let house = House::new(json!([calls("bash", arguments), {"text": "done"}]));
            let context = house.core.context();
            context.tools.policy(&context.scope, Arc::new(Ask)).unwrap();
            let mut editor = house.session().await;
            editor.begin("go").await;
            let question = editor.question().await;
            let content = &question["params"]["toolCall"]["content"];
            let texts: Vec<_> = content.as_array().unwrap().iter().collect();
            let place = texts.get(1).and_then(|text| text["content"]["text"].as_str());
            // In the background only what the model wrote is known.
            let said = if background {
                Some(format!("in {workdir}"))
            } else {
                said.map(str::to_owned)
            };
            assert_eq!(place, said.as_deref(), "{content}");
        }
    }
}

#[tokio::test]
async fn a_call_that_is_not_allowed_does_not_run() {
    for outcome in [
        json!({"outcome": "selected", "optionId": "reject"}),
        json!({"outcome": "selected", "optionId": "something else"}),
        json!({"outcome": "cancelled"}),
    ] {
        let (house, mut editor, prompt, question) = asked("touch ran").await;
        say(&mut editor, &question, outcome.clone()).await;
        assert_eq!(
            editor.answer(prompt).await["result"]["stopReason"],
            "end_turn",
            "{outcome}"
        );
        assert!(!house.file("ran").exists(), "{outcome}");
        assert_eq!(editor.updates("tool_call_update")[0]["status"], "failed");
    }
}

#[tokio::test]
async fn an_editor_that_cannot_be_asked_allows_nothing() {
    let (house, mut editor, prompt, question) = asked("touch ran").await;
    let error = json!({"code": -32601, "message": "Method not found"});
    editor
        .send(json!({"jsonrpc": "2.0", "id": question["id"], "error": error}))
        .await;
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");
    assert!(!house.file("ran").exists());
}

#[tokio::test]
async fn a_cancelled_prompt_takes_its_question_back() {
    let (house, mut editor, prompt, question) = asked("touch ran").await;
    editor.cancel().await;
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "cancelled");
    let taken_back = editor
        .seen
        .iter()
        .find(|message| message["method"] == "$/cancel_request");
    assert_eq!(
        taken_back.map(|message| &message["params"]["requestId"]),
        Some(&question["id"])
    );
    // An answer that comes too late changes nothing.
    say(
        &mut editor,
        &question,
        json!({"outcome": "selected", "optionId": "allow"}),
    )
    .await;
    editor.call("authenticate", json!({"methodId": "none"})).await;
    assert!(!house.file("ran").exists());
}

#[tokio::test]
async fn what_is_asked_for_hides_nothing() {
    let (_house, mut editor, prompt, question) = asked("echo \u{1b}[2K\u{202e}x").await;
    assert_eq!(
        question["params"]["toolCall"]["title"],
        r"echo \u{1b}[2K\u{202e}x"
    );
    assert_eq!(
        editor.updates("tool_call")[0]["title"],
        r"echo \u{1b}[2K\u{202e}x"
    );
    let rejected = json!({"outcome": "selected", "optionId": "reject"});
    say(&mut editor, &question, rejected).await;
    assert_eq!(editor.answer(prompt).await["result"]["stopReason"], "end_turn");
}
