//! Products as subagents of `dsh acp`, whose own model is scripted, too: what an editor sees of them.

use dsh_testkit::Gate;
use serde_json::{Value, json};
use tests::product::subagent::{Freedom, PRESET, mount};
use tests::{Editor, Product, Room, Turn, says};

use super::{FILES, gone_soon, in_background, task, tool_call};

/// An editor with a session whose agent says `turns`, and can delegate to these products.
async fn opened(room: &Room, products: &[&Product], turns: Value) -> (Editor, Value) {
    let mounted: Vec<_> = products
        .iter()
        .map(|product| (*product, Freedom::Bypass))
        .collect();
    mount(room, &mounted);
    let model = room.script("model.json", turns);
    let arguments: Vec<&str> = ["--model", &model].into_iter().chain(PRESET).collect();
    let mut editor = room.editor(&arguments, json!({})).await;
    let session = editor.opens(room).await["sessionId"].clone();
    for product in products {
        assert!(product.room.processes().is_empty(), "a session starts none");
    }
    (editor, session)
}

fn calls(product: &Product, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": product.tool(), "arguments": arguments}]})
}

/// Prompts a session and does not wait; the id of the request.
async fn asks(editor: &mut Editor, session: &Value) -> u64 {
    let prompt = json!([{"type": "text", "text": "go"}]);
    let params = json!({"sessionId": session, "prompt": prompt});
    editor.sends("session/prompt", params).await
}

/// Waits until the model has said this, in however many pieces.
async fn says_so(editor: &mut Editor, text: &str) {
    let mut said = String::new();
    while !said.ends_with(text) {
        let piece = editor
            .hears(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
            .await;
        said += piece["params"]["update"]["content"]["text"]
            .as_str()
            .expect("a text");
    }
}

#[tokio::test]
async fn an_editor_sees_the_calls_of_both_products_and_their_answers() {
    let codex = Product::codex([Turn::text("of Codex")]).await;
    let claude = Product::claude([Turn::text("of Claude Code")]).await;
    let room = Room::new();
    let turns = json!([calls(&codex, task()), calls(&claude, task()), says("Done.")]);
    let (mut editor, session) = opened(&room, &[&codex, &claude], turns).await;
    let answer = editor.prompts(&session, "go").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    codex.assert_clean();
    claude.assert_clean();
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let (begun, ended) = (editor.updates("tool_call"), editor.updates("tool_call_update"));
    let cards: Vec<Value> = begun
        .iter()
        .map(|card| json!([card["title"], card["kind"], card["rawInput"], card["content"]]))
        .collect();
    // A kind that is left out is the protocol's "other".
    let card = |tool| {
        json!([
            format!("{tool}: the label"),
            null,
            "the very task",
            text("the very task")
        ])
    };
    assert_eq!(cards, [card("subagent_codex"), card("subagent_claude_code")]);
    let results: Vec<Value> = ended
        .iter()
        .map(|card| json!([card["status"], card["content"]]))
        .collect();
    let completed = |said| json!(["completed", text(said)]);
    assert_eq!(results, [completed("of Codex"), completed("of Claude Code")]);
    assert_eq!(editor.leaves().await, Some(0));
    room.assert_empty();
}

/// The end of a task that nobody waits for wakes the session, which reads the answer.
async fn wakes(product: Product, gate: Gate) {
    let room = Room::new();
    let turns = json!([
        calls(&product, in_background()),
        says("It works."),
        {"expect": ["subagent-1 (subagent: the label) finished [status: completed]"], "tool_calls": [
            {"name": "task_output", "arguments": {"task_id": "subagent-1"}}
        ]},
        {"expect": ["the answer\n[status: completed]"], "text": "It has answered."},
    ]);
    let (mut editor, session) = opened(&room, &[&product], turns).await;
    let answer = editor.prompts(&session, "go").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    product.model.asked(1).await;
    gate.open();
    // No prompt is in flight.
    says_so(&mut editor, "It has answered.").await;
    product.assert_clean();
    assert_eq!(editor.leaves().await, Some(0));
    room.assert_empty();
}

#[tokio::test]
async fn codex_in_the_background_wakes_the_session_with_its_answer() {
    let gate = Gate::new();
    let product = Product::codex([Turn::text("the answer").held(&gate)]).await;
    wakes(product, gate).await;
}

#[tokio::test]
async fn claude_in_the_background_wakes_the_session_with_its_answer() {
    let gate = Gate::new();
    let product = Product::claude([Turn::text("the answer").held(&gate)]).await;
    wakes(product, gate).await;
}

/// A prompt that is cancelled while a product works for it; the session goes on.
async fn cancelled(product: Product) {
    let room = Room::new();
    let turns = json!([calls(&product, task()), says("Still here.")]);
    let (mut editor, session) = opened(&room, &[&product], turns).await;
    let prompt = asks(&mut editor, &session).await;
    for file in FILES {
        room.pid(file).await;
    }
    editor
        .tells("session/cancel", json!({"sessionId": session}))
        .await;
    let answer = editor.hears(|message| message["id"] == prompt).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    gone_soon(&product).await;
    product.assert_clean();
    let ended = editor.updates("tool_call_update");
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!(ended[0]["status"], "failed", "{ended:?}");
    let answer = editor.prompts(&session, "and now?").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.leaves().await, Some(0));
    room.assert_empty();
}

#[tokio::test]
async fn codex_goes_with_a_prompt_that_is_cancelled() {
    cancelled(Product::codex(tool_call()).await).await;
}

#[tokio::test]
async fn claude_goes_with_a_prompt_that_is_cancelled() {
    cancelled(Product::claude(tool_call()).await).await;
}

/// An editor that goes while a product works, in the foreground or in the background.
async fn left_by_its_editor(product: Product, arguments: Value) {
    let room = Room::new();
    let turns = json!([calls(&product, arguments), says("It works.")]);
    let (mut editor, session) = opened(&room, &[&product], turns).await;
    asks(&mut editor, &session).await;
    for file in FILES {
        room.pid(file).await;
    }
    assert_eq!(editor.leaves().await, Some(0));
    product.assert_clean();
    room.assert_empty();
}

#[tokio::test]
async fn codex_goes_with_its_editor() {
    left_by_its_editor(Product::codex(tool_call()).await, task()).await;
    left_by_its_editor(Product::codex(tool_call()).await, in_background()).await;
}

#[tokio::test]
async fn claude_goes_with_its_editor() {
    left_by_its_editor(Product::claude(tool_call()).await, task()).await;
    left_by_its_editor(Product::claude(tool_call()).await, in_background()).await;
}
