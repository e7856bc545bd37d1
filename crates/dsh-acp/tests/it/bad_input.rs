//! What an editor should not send, and does.

use serde_json::{Value, json};

use crate::editor::House;

#[tokio::test]
async fn garbage_gets_an_error_and_the_agent_lives() {
    let house = House::new(json!([{"text": "alive"}]));
    let mut editor = house.session().await;
    for (line, code) in [
        ("this is not JSON\n", -32700),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1\n", -32700),
        ("[]\n", -32600),
        (
            "[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\"}]\n",
            -32600,
        ),
        ("42\n", -32600),
        ("{\"id\": 77, \"method\": \"session/new\"}\n", -32600),
    ] {
        editor.send_bytes(line.as_bytes()).await;
        let answer = editor.nobodys_answer().await;
        assert_eq!(answer["error"]["code"], code, "{line:?}: {answer}");
        assert!(answer.to_string().len() < 400, "{answer}");
    }
    editor.send_bytes(b"\xff\xfe\n\n   \n\xef\xbb\xbf").await;
    assert_eq!(
        editor.nobodys_answer().await["error"]["data"],
        "the line is no UTF-8"
    );
    // Answers to questions that nobody asked, whole and broken.
    editor
        .send(json!({"jsonrpc": "2.0", "id": 99, "result": {}}))
        .await;
    editor
        .send(json!({"jsonrpc": "2.0", "id": 99, "result": {}, "error": {}}))
        .await;
    assert_eq!(editor.prompt("hello").await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_line_without_end_is_refused_and_skipped() {
    let house = House::new(json!([{"text": "alive"}]));
    let mut editor = house.session().await;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..9 {
        editor.send_bytes(&piece).await;
    }
    editor.send_bytes(b"\n").await;
    let answer = editor.nobodys_answer().await;
    assert_eq!(
        answer["error"]["data"],
        "a message may have at most 4194304 bytes"
    );
    assert_eq!(editor.prompt("hello").await["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn what_is_not_there_is_said_so() {
    let house = House::new(json!([]));
    let mut editor = house.silent(1 << 16);
    let early = editor
        .call("session/new", json!({"cwd": "/", "mcpServers": []}))
        .await;
    assert!(early["error"].is_object(), "before initialize: {early}");
    editor.initialize(json!({})).await;
    let unknown = editor.call("session/fly", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601);
    let unread = editor.call("session/new", json!({"cwd": 3})).await;
    assert_eq!(unread["error"]["code"], -32602);
    let prompt = json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "x"}]});
    let nobody = editor.call("session/prompt", prompt).await;
    assert_eq!(nobody["error"]["code"], -32002, "{nobody}");
    assert_eq!(
        nobody["error"]["message"],
        "Resource not found: session nobody is not open"
    );
    for method in ["session/close", "session/set_config_option"] {
        let params = json!({"sessionId": "nobody", "configId": "model", "value": "x"});
        assert_eq!(
            editor.call(method, params).await["error"]["code"],
            -32002,
            "{method}"
        );
    }
    editor.session = "nobody".to_owned();
    editor.cancel().await;
    let still: Value = editor.call("authenticate", json!({"methodId": "x"})).await;
    assert_eq!(still["result"], json!({}));
}

#[tokio::test]
async fn more_requests_than_may_wait_are_all_answered() {
    let house = House::new(json!([]));
    let mut editor = house.editor().await;
    for round in 0..3 {
        let mut ids = Vec::new();
        for number in 0..400 {
            let method = ["authenticate", "session/fly", "session/prompt"][number % 3];
            ids.push(editor.request(method, json!({"methodId": "x"})).await);
            if number % 10 == 0 {
                editor.send_bytes(b"garbage\n").await;
            }
        }
        for id in ids {
            let answer = editor.answer(id).await;
            assert!(
                answer["error"].is_object() || answer["result"].is_object(),
                "round {round}: {answer}"
            );
        }
    }
}
