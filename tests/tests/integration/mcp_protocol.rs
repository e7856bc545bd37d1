//! What the server accepts and refuses, and that it says nothing but protocol.

use serde_json::{Value, json};
use tests::{Room, Server, ServerOptions};

#[tokio::test]
async fn the_four_tools_are_offered_and_their_list_is_small() {
    let mut server = Server::start().await;
    let answer = server.request("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().expect("tools").clone();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["bash", "task_kill", "task_list", "task_output"]);
    let size = answer["result"].to_string().len();
    assert!(size < 6 * 1024, "{size} bytes");
    let hint = |name: &str, hint: &str| {
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .map(|tool| tool["annotations"][hint].clone())
    };
    assert_eq!(hint("task_list", "readOnlyHint"), Some(Value::Bool(true)));
    assert_eq!(hint("task_kill", "destructiveHint"), Some(Value::Bool(true)));
    server.close().await;
}

#[tokio::test]
async fn garbage_gets_a_parse_error_and_the_server_lives() {
    let mut server = Server::start().await;
    for garbage in [
        "this is not json",
        "{\"jsonrpc\": \"2.0\", \"id\": 1",
        "\u{1b}[31m",
    ] {
        server.line(garbage).await;
        let answer = server.other().await;
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
        assert!(answer["id"].is_null(), "{answer}");
    }
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}

#[tokio::test]
async fn invalid_messages_are_refused_by_the_rules_of_json_rpc() {
    let mut server = Server::start().await;
    let invalid = [
        json!([1, 2]),
        json!("text"),
        json!({"jsonrpc": "1.0", "id": "a", "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": "b"}),
        json!({"jsonrpc": "2.0", "id": "c", "method": 7}),
        json!({"jsonrpc": "2.0", "id": "d", "method": "tools/call", "params": [1]}),
    ];
    for message in invalid {
        server.line(&message.to_string()).await;
        let answer = server.other().await;
        assert_eq!(answer["error"]["code"], -32600, "{message} got {answer}");
    }
    server.line("").await;
    server.notify("notifications/unheard/of", json!({})).await;
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}

#[tokio::test]
async fn an_unknown_method_is_an_error_and_an_unknown_tool_too() {
    let mut server = Server::start().await;
    let answer = server.request("no/such/method", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = server
        .request("tools/call", json!({"name": "no_such_tool", "arguments": {}}))
        .await;
    let text = answer.to_string();
    assert!(text.contains("no_such_tool"), "{text}");
    assert!(
        answer["error"].is_object() || answer["result"]["isError"] == true,
        "{text}"
    );
    server.close().await;
}

#[tokio::test]
async fn wrong_arguments_are_an_error_result_that_names_them() {
    let mut server = Server::start().await;
    let cases = [
        (
            "task_output",
            json!({}),
            "Error: invalid arguments: missing required property \"task_id\"",
        ),
        (
            "task_output",
            json!({"task_id": "bash-1", "wait": 1}),
            "Error: invalid arguments: \"wait\" must be a boolean",
        ),
        (
            "task_output",
            json!({"task_id": ""}),
            "Error: invalid task_id: expected a non-empty string, got \"\"",
        ),
        (
            "bash",
            json!({"description": "d"}),
            "Error: invalid arguments: missing required property \"command\"",
        ),
        (
            "task_kill",
            json!({"task_id": "bash-9"}),
            "Error: unknown task bash-9",
        ),
    ];
    for (tool, arguments, error) in cases {
        let reply = server.call(tool, arguments).await;
        assert_eq!(reply.error(), error);
    }
    assert_eq!(server.list().await.ok(), "(no background tasks)");
    server.close().await;
}

#[tokio::test]
async fn impossible_commands_are_refused_and_burn_no_id() {
    let mut server = Server::start().await;
    for command in ["", "   ", "echo a\0b"] {
        let arguments = json!({"command": command, "description": "d", "run_in_background": true});
        let reply = server.call("bash", arguments).await;
        assert!(
            reply.error().len() < 1000,
            "the refusal does not repeat the command"
        );
    }
    let reply = server
        .call(
            "bash",
            json!({"command": "pwd", "description": "d", "workdir": "/no/such/place"}),
        )
        .await;
    assert!(reply.error().contains("/no/such/place"), "{reply:?}");
    assert_eq!(server.background("true").await, "bash-1");
    server.close().await;
}

#[tokio::test]
async fn a_command_may_be_long() {
    let mut server = Server::start().await;
    let reply = server
        .bash(&format!(": {}\necho ran", "x".repeat(1024 * 1024)))
        .await;
    assert_eq!(reply.ok(), "ran\n");
    server.close().await;
}

#[tokio::test]
async fn a_waiting_call_holds_back_no_other() {
    let mut server = Server::start().await;
    let id = server.background("echo $$ > pid; exec sleep 60").await;
    server.room.pid("pid").await;
    let waiting = server
        .send_call("task_output", json!({"task_id": id, "wait": true}))
        .await;
    assert_eq!(server.bash("echo meanwhile").await.ok(), "meanwhile\n");
    assert_eq!(
        server.list().await.ok(),
        "bash-1 [bash] running — echo $$ > pid; exec sleep 60"
    );
    assert!(!server.has_answered(waiting), "the wait has no reason to end yet");
    assert_eq!(
        server.kill(&id).await.ok(),
        "requested cancellation of task bash-1"
    );
    assert_eq!(
        server.reply(waiting).await.ok(),
        "(no new output)\n[status: killed, signal: SIGTERM]"
    );
    server.close().await;
}

#[tokio::test]
async fn a_request_before_the_handshake_does_not_end_the_server() {
    let room = Room::new();
    let work = room.work();
    let mut server = Server::spawn(room, &work, ServerOptions::default());
    let early = server.request("tools/list", json!({})).await;
    assert!(early["error"].is_object(), "{early}");
    server.shake_hands().await;
    assert_eq!(server.bash("echo now").await.ok(), "now\n");
    server.close().await;
}

#[tokio::test]
async fn logs_go_to_stderr_only() {
    let options = ServerOptions {
        env: &[("RUST_LOG", "debug")],
        ..ServerOptions::default()
    };
    let mut server = Server::start_with(options).await;
    server.background("echo hi").await;
    server.wait("bash-1").await;
    assert!(!server.log().is_empty(), "at this level something is logged");
    // Reading asserts of every line of stdout that it is protocol.
    server.close().await;
}
