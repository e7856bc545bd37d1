//! A prompt, its answer and how that comes.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_llm::{Chunk, FinishReason, ModelAdapter, ModelError, ModelRequest, ModelStream};
use dsh_testkit::Gate;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::editor::{House, runs, starts};

#[tokio::test]
async fn a_prompt_is_answered_after_its_text_and_thoughts() {
    let house = House::new(json!([{"reasoning": "A greeting.", "text": "Hello to you."}]));
    let mut editor = house.session().await;
    let answer = editor.prompt("hello").await;
    assert_eq!(answer["result"], json!({"stopReason": "end_turn"}));
    assert_eq!(editor.text("agent_message_chunk"), "Hello to you.");
    assert_eq!(editor.text("agent_thought_chunk"), "A greeting.");
    assert_eq!(
        editor.text("user_message_chunk"),
        "",
        "the editor shows what its user says"
    );
    let ids = |sort| -> Vec<_> {
        editor
            .updates(sort)
            .iter()
            .map(|chunk| chunk["messageId"].clone())
            .collect()
    };
    assert!(ids("agent_message_chunk").iter().all(|id| id == "answer-1.1"));
    assert!(ids("agent_thought_chunk").iter().all(|id| id == "thought-1.1"));
}

#[tokio::test]
async fn a_link_is_told_to_the_model_and_other_content_is_refused() {
    let house = House::new(json!([{"text": "ok", "expect": ["look at", "[a.rs](file:///tmp/a.rs)"]}]));
    let mut editor = house.session().await;
    let session = editor.session.clone();
    let prompt = json!([
        {"type": "text", "text": "look at"},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///tmp/a.rs"},
    ]);
    let answer = editor
        .call("session/prompt", json!({"sessionId": session, "prompt": prompt}))
        .await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");

    for (block, reason) in [
        (
            json!({"type": "image", "data": "", "mimeType": "image/png"}),
            "images are not supported",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///x", "text": "x"}}),
            "only text and resource_link",
        ),
    ] {
        let params = json!({"sessionId": session, "prompt": [block]});
        let error = editor.call("session/prompt", params).await["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
    }
    let empty = editor
        .call("session/prompt", json!({"sessionId": session, "prompt": []}))
        .await;
    assert_eq!(empty["error"]["message"], "Invalid params: the prompt is empty");
}

#[tokio::test]
async fn one_prompt_at_a_time_and_a_cancelled_one_says_so() {
    let house = House::new(json!([{"text": "I begin ", "hang": true}, {"text": "again"}]));
    let mut editor = house.session().await;
    let first = editor.begin("go").await;
    editor
        .update(|update| {
            update["content"]["text"]
                .as_str()
                .is_some_and(|text| text.contains("begin"))
        })
        .await;
    let second = editor.prompt("and this").await;
    assert_eq!(
        second["error"]["message"],
        "Invalid params: a prompt of this session is in flight: cancel it first"
    );
    editor.cancel().await;
    assert_eq!(editor.answer(first).await["result"]["stopReason"], "cancelled");
    assert_eq!(
        editor.text("agent_message_chunk"),
        "I begin ",
        "what was streamed is not sent again"
    );
    assert_eq!(editor.prompt("go on").await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_prompt_that_is_withdrawn_is_cancelled() {
    let house = House::new(json!([{"text": "I begin ", "hang": true}, {"text": "again"}]));
    let mut editor = house.session().await;
    let id = editor.begin("go").await;
    editor
        .update(|update| update["sessionUpdate"] == "agent_message_chunk")
        .await;
    let params = json!({"requestId": id});
    editor
        .send(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}))
        .await;
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "cancelled");
    assert_eq!(editor.prompt("go on").await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_prompt_behind_a_notice_turn_is_answered_for_itself() {
    let directory = tempfile::TempDir::new().unwrap();
    let go_on = directory.path().join("go-on");
    let house = House::new(json!([
        starts("until [ -e go ]; do sleep 0.02; done"),
        {"text": "started"},
        {"text": "it ended", "wait_for_file": go_on},
        {"text": "to your question", "expect": ["and now?"]},
    ]));
    let mut editor = house.session().await;
    assert_eq!(
        editor.prompt("start it").await["result"]["stopReason"],
        "end_turn"
    );
    std::fs::write(house.file("go"), "").unwrap();
    // The notice is told: its turn is open, and waits.
    editor
        .update(|update| {
            update["title"]
                .as_str()
                .is_some_and(|title| title.contains("[status: completed"))
        })
        .await;
    let id = editor.begin("and now?").await;
    assert!(!editor.has_answer(id));
    std::fs::write(&go_on, "").unwrap();
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "end_turn");
    let said = editor.text("agent_message_chunk");
    assert!(
        said.ends_with("it endedto your question"),
        "the answer came behind both turns: {said}"
    );
}

#[tokio::test]
async fn a_prompt_that_is_cancelled_before_its_turn_is_answered() {
    let house = House::new(json!([
        starts("until [ -e go ]; do sleep 0.02; done"),
        {"text": "started"},
        {"text": "it ended", "hang": true},
        {"text": "fine", "expect": ["once more"]},
    ]));
    let mut editor = house.session().await;
    editor.prompt("start it").await;
    std::fs::write(house.file("go"), "").unwrap();
    // The turn of the notice is open, and the model is being asked in it.
    editor.update(|update| update["content"]["text"] == "ended").await;
    let id = editor.begin("dropped").await;
    editor.cancel().await;
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "cancelled");
    assert_eq!(
        editor.prompt("once more").await["result"]["stopReason"],
        "end_turn"
    );
}

#[tokio::test]
async fn how_a_turn_ends_is_how_its_prompt_is_answered() {
    let house = House::new(json!([
        {"text": "cut", "finish": "max-tokens"},
        {"error": {"message": "the model is on holiday", "code": "SERVER"}},
        {"text": "back"},
    ]));
    let mut editor = house.session().await;
    assert_eq!(editor.prompt("long").await["result"]["stopReason"], "max_tokens");
    let failed = editor.prompt("again").await;
    assert_eq!(failed["error"]["code"], -32603);
    assert_eq!(
        failed["error"]["message"],
        "Internal error: turn failed: the model is on holiday"
    );
    assert_eq!(editor.prompt("now?").await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn cancelling_ends_the_command_and_leaves_the_background() {
    let house = House::new(json!([
        starts("echo $$ > background; exec sleep 300"),
        runs("echo $$ > foreground; exec sleep 300"),
    ]));
    let mut editor = house.session().await;
    let id = editor.begin("both").await;
    let [foreground, background] = ["foreground", "background"].map(|name| house.file(name));
    let pid = |file: &std::path::Path| dsh_testkit::process::read_pid(file);
    dsh_testkit::eventually("both run", || {
        pid(&foreground).is_some() && pid(&background).is_some()
    })
    .await;
    editor.cancel().await;
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "cancelled");
    assert!(dsh_testkit::process::is_gone(pid(&foreground).unwrap()));
    assert!(!dsh_testkit::process::is_gone(pid(&background).unwrap()));
    editor.close_input();
    editor.rest().await;
    editor.served().await;
    assert!(dsh_testkit::process::is_gone(pid(&background).unwrap()));
}

/// Says a word, then much more at once than an observer can be behind. A gate stands before each.
struct Flood {
    pieces: usize,
    flood: Gate,
    end: Gate,
}

struct FloodStream {
    pieces: usize,
    said: usize,
    flood: Gate,
    end: Gate,
}

#[async_trait]
impl ModelAdapter for Flood {
    async fn send(
        &self,
        _: Arc<ModelRequest>,
        _: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        Ok(Box::new(FloodStream {
            pieces: self.pieces,
            said: 0,
            flood: self.flood.clone(),
            end: self.end.clone(),
        }))
    }
}

#[async_trait]
impl ModelStream for FloodStream {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        match self.said {
            1 => self.flood.opened().await,
            said if said == self.pieces => self.end.opened().await,
            _ => {}
        }
        self.said += 1;
        let text = format!("{};", self.said);
        Ok(match self.said {
            said if said <= self.pieces => Some(Chunk::TextDelta { index: 0, text }),
            said if said == self.pieces + 1 => Some(Chunk::Finish(FinishReason::Stop)),
            _ => None,
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_piece_of_a_flood_comes_once_and_in_order() {
    let pieces = 20_000;
    let (flood, end) = (Gate::new(), Gate::new());
    let house = House::with_model(Arc::new(Flood {
        pieces,
        flood: flood.clone(),
        end: end.clone(),
    }));
    let mut editor = house.session().await;
    let id = editor.begin("flood").await;
    // Streamed: something is there before the answer is whole.
    editor
        .update(|update| update["sessionUpdate"] == "agent_message_chunk")
        .await;
    flood.open();
    end.open();
    assert_eq!(editor.answer(id).await["result"]["stopReason"], "end_turn");
    let expected: String = (1..=pieces).map(|piece| format!("{piece};")).collect();
    assert_eq!(editor.text("agent_message_chunk"), expected);
}
