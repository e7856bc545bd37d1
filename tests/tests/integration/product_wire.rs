//! The products against scripted models, in their own protocols: what whoever drives them has to rely on.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use dsh_testkit::{Gate, eventually, eventually_within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tests::product::{claude, codex};
use tests::{Dialogue, Product, Turn};

/// The longest that a product may take for anything, on a busy machine too.
const LIMIT: Duration = Duration::from_secs(60);

/// A request to the app server, and its answer.
async fn request(codex: &mut Dialogue, id: i64, method: &str, params: Value) -> Value {
    codex
        .say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        .await;
    let answer = codex.hear(method, |message| message["id"] == id).await;
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

async fn initialize(codex: &mut Dialogue) {
    let client = json!({"name": "deepseek-harness", "title": "DeepSeek Harness", "version": "0.0.1"});
    let capabilities = json!({"experimentalApi": false, "requestAttestation": false});
    let hello = json!({"clientInfo": client, "capabilities": capabilities});
    request(codex, 1, "initialize", hello).await;
    codex
        .say(json!({"jsonrpc": "2.0", "method": "initialized"}))
        .await;
}

/// Everything up to a turn that the model was asked for; returns the ids of the thread and the turn.
async fn begin(codex: &mut Dialogue, product: &Product) -> (String, String) {
    initialize(codex).await;
    let thread = request(
        codex,
        2,
        "thread/start",
        json!({"cwd": product.room.work(), "ephemeral": true, "approvalPolicy": "never", "sandbox": "danger-full-access"}),
    )
    .await;
    assert_eq!(thread["thread"]["ephemeral"], true, "{thread}");
    let thread = thread["thread"]["id"].as_str().expect("an id").to_owned();
    let input = json!([{"type": "text", "text": "the task", "text_elements": []}]);
    let turn = request(
        codex,
        3,
        "turn/start",
        json!({"threadId": thread, "input": input}),
    )
    .await;
    let turn = turn["turn"]["id"].as_str().expect("an id").to_owned();
    (thread, turn)
}

async fn turn_completed(codex: &mut Dialogue) -> Value {
    let completed = codex
        .hear("turn/completed", |message| message["method"] == "turn/completed")
        .await;
    completed["params"]["turn"].clone()
}

fn answers(codex: &Dialogue) -> Vec<&str> {
    let items = codex.heard().iter().map(|message| &message["params"]["item"]);
    let said = items.filter(|item| item["type"] == "agentMessage");
    said.filter_map(|item| item["text"].as_str())
        .filter(|text| !text.is_empty())
        .collect()
}

#[tokio::test]
async fn codex_runs_a_tool_and_answers() {
    let product = Product::codex([Turn::shell("echo one two > made"), Turn::text("three")]).await;
    let mut codex = product.converse(&codex::APP_SERVER);
    begin(&mut codex, &product).await;
    let turn = turn_completed(&mut codex).await;
    assert_eq!(turn["status"], "completed", "{turn}");
    assert!(answers(&codex).contains(&"three"), "{:?}", codex.heard());
    assert_eq!(
        std::fs::read_to_string(product.room.file("made")).expect("the tool ran"),
        "one two\n"
    );
    let first = product.model.asked(1).await;
    assert_eq!(first.header("authorization"), Some("Bearer scripted-key"));
    assert_eq!(first.header("originator"), Some("deepseek-harness"));
    assert!(first.body["input"].to_string().contains("the task"), "{first:?}");
    assert_eq!(product.model.requests().len(), 2);
    assert_eq!(codex.end().await.code(), Some(0));
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn codex_is_interrupted_in_a_held_request() {
    let gate = Gate::new();
    let product = Product::codex([Turn::text("late").held(&gate)]).await;
    let mut codex = product.converse(&codex::APP_SERVER);
    let (thread, turn) = begin(&mut codex, &product).await;
    product.model.asked(1).await;
    request(
        &mut codex,
        4,
        "turn/interrupt",
        json!({"threadId": thread, "turnId": turn}),
    )
    .await;
    let turn = turn_completed(&mut codex).await;
    assert_eq!(turn["status"], "interrupted", "{turn}");
    assert_eq!(codex.end().await.code(), Some(0));
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn codex_goes_on_when_a_held_request_is_released() {
    let gate = Gate::new();
    let product = Product::codex([Turn::text("late").held(&gate)]).await;
    let mut codex = product.converse(&codex::APP_SERVER);
    begin(&mut codex, &product).await;
    product.model.asked(1).await;
    assert_eq!(answers(&codex), [""; 0]);
    gate.open();
    assert_eq!(turn_completed(&mut codex).await["status"], "completed");
    assert!(answers(&codex).contains(&"late"), "{:?}", codex.heard());
    codex.end().await;
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn codex_tells_what_the_model_server_refused() {
    let failed = json!({"type": "response.failed", "response": {
        "id": "response-1", "error": {"code": "context_length_exceeded", "message": "too long"}
    }});
    for (turn, category) in [
        (Turn::Error(400, "no".to_owned()), "other"),
        (Turn::Events(vec![failed]), "contextWindowExceeded"),
    ] {
        let product = Product::codex([turn]).await;
        let mut codex = product.converse(&codex::APP_SERVER);
        begin(&mut codex, &product).await;
        let turn = turn_completed(&mut codex).await;
        assert_eq!(turn["status"], "failed", "{turn}");
        assert_eq!(turn["error"]["codexErrorInfo"], category, "{turn}");
        codex.end().await;
        assert_eq!(product.model.requests().len(), 1);
        product.assert_clean_soon().await;
    }
}

/// What [`Product::assert_clean`] is for: plugins are fetched at the start, unless the configuration says otherwise.
#[tokio::test]
async fn codex_with_plugins_asks_for_other_machines_and_gets_none() {
    let product = Product::codex([]).await;
    let [server, stdio] = codex::APP_SERVER;
    let mut codex = product.converse(&["-c", "features.plugins=true", server, stdio]);
    initialize(&mut codex).await;
    let asked = || !product.model.strangers().is_empty();
    eventually_within("a request for another machine", LIMIT, asked).await;
    codex.end().await;
    eventually("what it started to go", || product.room.processes().is_empty()).await;
}

async fn task(claude: &mut Dialogue) {
    for line in claude::task("the task") {
        claude.say(line).await;
    }
}

async fn result(claude: &mut Dialogue) -> Value {
    claude.hear("result", |message| message["type"] == "result").await
}

#[tokio::test]
async fn claude_runs_a_tool_and_answers() {
    let product = Product::claude([Turn::shell("echo one two > made"), Turn::text("three")]).await;
    let mut claude = product.converse(&claude::stream_json("bypassPermissions"));
    task(&mut claude).await;
    let result = result(&mut claude).await;
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"]),
        (&json!("success"), &json!(false), &json!("three")),
        "{result}"
    );
    assert_eq!(
        std::fs::read_to_string(product.room.file("made")).expect("the tool ran"),
        "one two\n"
    );
    let first = product.model.asked(1).await;
    assert_eq!(first.header("x-api-key"), Some("scripted-key"));
    assert_eq!(first.body["model"], "scripted-model", "its settings count");
    assert!(first.body["messages"].to_string().contains("the task"));
    assert_eq!(product.model.requests().len(), 2);
    assert_eq!(claude.end().await.code(), Some(0), "{}", claude.log());
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn claude_denies_by_itself_what_its_mode_forbids() {
    let file = json!({"file_path": "forbidden", "content": "x"});
    let product = Product::claude([Turn::Call("Write".to_owned(), file), Turn::text("denied")]).await;
    let mut claude = product.converse(&claude::stream_json("dontAsk"));
    task(&mut claude).await;
    assert_eq!(result(&mut claude).await["result"], "denied");
    let denied = |message: &&Value| message["subtype"] == "permission_denied";
    assert_eq!(
        claude.heard().iter().filter(denied).count(),
        1,
        "{:?}",
        claude.heard()
    );
    assert!(!product.room.file("forbidden").exists());
    claude.end().await;
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn claude_terminated_in_a_held_request_has_no_answer() {
    let product = Product::claude([Turn::silence()]).await;
    let mut claude = product.converse(&claude::stream_json("dontAsk"));
    task(&mut claude).await;
    product.model.asked(1).await;
    kill(Pid::from_raw(claude.pid().cast_signed()), Signal::SIGTERM).expect("it runs");
    let status = claude.end().await;
    assert_eq!((status.code(), status.signal()), (Some(143), None));
    // Whether it still tells that it was interrupted depends on who is faster.
    let results = claude
        .heard()
        .iter()
        .filter(|message| message["type"] == "result");
    let subtypes: Vec<&Value> = results.map(|result| &result["subtype"]).collect();
    assert!(
        subtypes
            .iter()
            .all(|subtype| *subtype == "error_during_execution"),
        "{subtypes:?}"
    );
    product.assert_clean_soon().await;
}

#[tokio::test]
async fn claude_tells_what_the_model_server_refused() {
    let product = Product::claude([Turn::Error(400, "no".to_owned())]).await;
    let mut claude = product.converse(&claude::stream_json("dontAsk"));
    task(&mut claude).await;
    let result = result(&mut claude).await;
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("success"), &json!(true)),
        "{result}"
    );
    assert_eq!(claude.end().await.code(), Some(1));
    product.assert_clean_soon().await;
}
