//! Bad input: a clear error, and the server goes on.

use crate::client::{Client, Probe, core, texts};
use dsh_agent_core::Config;
use dsh_testkit::eventually;
use serde_json::{Value, json};

#[tokio::test]
async fn a_bad_line_gets_a_clear_error_and_the_server_goes_on() {
    let mut client = Client::default().await;
    let huge = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(5 << 20)
    );
    let cases: [(&[u8], Value, i64, &str); 9] = [
        (b"garbage", Value::Null, -32700, "not JSON"),
        (b"{\"jsonrpc\":\"2.0\",", Value::Null, -32700, "not JSON"),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"\xff\xfe\"}",
            Value::Null,
            -32700,
            "not JSON",
        ),
        (b"42", Value::Null, -32600, "must be a JSON object"),
        (
            br#"{"jsonrpc":"2.0","id":"a"}"#,
            json!("a"),
            -32600,
            "\"method\" is missing",
        ),
        (
            br#"[{"jsonrpc":"2.0","id":"a","method":"ping"}]"#,
            json!("a"),
            -32600,
            "batches are not supported",
        ),
        (huge.as_bytes(), json!(1), -32600, "at most 4194304 bytes"),
        (
            br#"{"jsonrpc":"2.0","id":"a","method":"no/such"}"#,
            json!("a"),
            -32601,
            "unknown method no/such",
        ),
        (
            br#"{"jsonrpc":"2.0","id":"a","method":"tools/call"}"#,
            json!("a"),
            -32602,
            "needs the \"name\"",
        ),
    ];
    for (line, id, code, reason) in cases {
        client.send_bytes(line).await;
        client.send_bytes(b"\n").await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code)),
            "{answer}"
        );
        assert!(
            answer["error"]["message"].as_str().unwrap().contains(reason),
            "{answer}"
        );
        client.settle().await;
    }
    assert_eq!(client.bash("echo still here").await, ["still here\n"]);
}

#[tokio::test]
async fn no_error_repeats_a_megabyte_of_what_it_refuses() {
    let long = "é".repeat(500_000);
    let mut silent = Client::silent(core(Config::default()), 1 << 16);
    let early = silent.request(&long, json!({})).await;
    let early = silent.answer(early).await;

    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    let mut client = Client::connected(core).await;
    let call = json!({"name": "probe", "arguments": {}});
    let call = json!({"jsonrpc": "2.0", "id": long, "method": "tools/call", "params": call});
    client.send(call.clone()).await;
    probe.entered.opened().await;
    client.send(call).await;
    let mut errors = vec![early, client.next().await];
    for (method, params) in [
        (long.as_str(), json!({})),
        ("resources/read", json!({"uri": long})),
        ("resources/read", json!({"uri": format!("dsh://task/{long}")})),
        ("tools/call", json!({"name": long})),
        (
            "tools/call",
            json!({"name": "bash", "arguments": {"command": "true", "description": "d", "workdir": long}}),
        ),
        (
            "tools/call",
            json!({"name": "task_output", "arguments": {"task_id": long}}),
        ),
        (
            "tools/call",
            json!({"name": "task_output", "arguments": {"task_id": "bash-1", long.as_str(): 1}}),
        ),
        ("tools/call", json!({"name": "bash", "arguments": long})),
    ] {
        let id = client.request(method, params).await;
        errors.push(client.answer(id).await);
    }
    for answer in errors {
        let message = if answer["error"].is_null() {
            assert_eq!(answer["result"]["isError"], true);
            texts(&answer)[0].clone()
        } else {
            answer["error"]["message"].as_str().unwrap().to_owned()
        };
        assert!(message.len() < 10_000, "{} bytes", message.len());
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_answered_under_its_id_unless_an_earlier_request_has_it() {
    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    let mut client = Client::connected(core).await;
    let call = |id: &str, text: String| {
        let call = json!({"name": "probe", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": call, "id": id})
    };
    client.send(call("busy", String::new())).await;
    probe.entered.opened().await;
    for (id, answered) in [("busy", Value::Null), ("free", json!("free"))] {
        client.send(call(id, "x".repeat(4_500_000))).await;
        let answer = client.next().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["message"]),
            (&answered, &json!("a message may have at most 4194304 bytes"))
        );
    }
    // Just under the limit it is served.
    let id = client
        .request("ping", json!({"_meta": {"text": "x".repeat(4_100_000)}}))
        .await;
    assert_eq!(client.answer(id).await["result"], json!({}));
}

#[tokio::test]
async fn wrong_arguments_are_a_result_for_the_model() {
    let mut client = Client::default().await;
    let cases = [
        (
            json!({"name": "task_output", "arguments": {}}),
            "missing required property \"task_id\"",
        ),
        (
            json!({"name": "task_output"}),
            "missing required property \"task_id\"",
        ),
        (
            json!({"name": "task_output", "arguments": {"task_id": ""}}),
            "invalid task_id",
        ),
        (
            json!({"name": "task_output", "arguments": {"task_id": 1}}),
            "\"task_id\" must be a string",
        ),
        (json!({"name": "task_output", "arguments": [1]}), "arguments"),
        (json!({"name": "task_output", "arguments": "{"}), "arguments"),
        (
            json!({"name": "task_kill", "arguments": {"task_id": "bash-7"}}),
            "unknown task bash-7",
        ),
        (
            json!({"name": "bash", "arguments": {"description": "x"}}),
            "\"command\"",
        ),
        (
            json!({"name": "bash", "arguments": {"command": "a\u{0}b", "description": "x"}}),
            "NUL",
        ),
        (json!({"name": "nope", "arguments": {}}), "unknown tool \"nope\""),
    ];
    for (params, reason) in cases {
        let id = client.request("tools/call", params.clone()).await;
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["isError"], true, "{params}: {answer}");
        let texts = texts(&answer);
        assert!(
            texts[0].starts_with("Error: ") && texts[0].contains(reason),
            "{params}: {texts:?}"
        );
    }
}

#[tokio::test]
async fn before_initialize_only_the_handshake_is_served() {
    let mut client = Client::silent(core(Config::default()), 1 << 16);
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 9, "result": {}}))
        .await;
    let id = client.request("tools/list", json!({})).await;
    let answer = client.answer(id).await;
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(answer["error"]["message"], "tools/list came before initialize");
    client.settle().await;
    let id = client.request("initialize", json!({"protocolVersion": 3})).await;
    assert!(client.answer(id).await["error"]["code"].is_i64());
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    assert_eq!(client.initialize().await["result"]["serverInfo"]["name"], "dsh");
    assert_eq!(client.bash("echo ready").await, ["ready\n"]);
}

#[tokio::test]
async fn an_id_in_flight_is_refused_without_taking_the_answer_from_the_first() {
    let core = core(Config::default());
    let probe = Probe::offer(&core, "probe", "ok");
    let mut client = Client::connected(core).await;
    let id = client.start_call("probe", json!({})).await;
    probe.entered.opened().await;
    client
        .send(json!({"jsonrpc": "2.0", "id": id, "method": "ping"}))
        .await;
    let refused = client.next().await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&Value::Null, &json!(-32600))
    );
    assert_eq!(
        refused["error"]["message"],
        format!("request id {id} is in use by a request in flight")
    );
    probe.gate.open();
    assert_eq!(texts(&client.answer(id).await), ["ok"]);
    eventually("the answer to be delivered", || probe.delivered() == 1).await;
}

#[tokio::test]
async fn cancelling_what_is_not_in_flight_does_nothing() {
    let mut client = Client::default().await;
    client.cancel(77).await;
    client.cancel(1).await;
    assert_eq!(client.bash("echo fine").await, ["fine\n"]);
}
