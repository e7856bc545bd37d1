//! `dsh run` and a chat-completions server that behaves well, badly, or not at all.

use nix::sys::signal::Signal;
use serde_json::json;
use tests::{GATED, ModelServer, Ran, Request, Room, Turn, Wire, ran};

const KEY: &str = "sk-0123456789abcdef";

/// `dsh run` against this URL, with keys in its environment.
async fn asks(room: &Room, url: &str, arguments: &[&str]) -> Ran {
    let mut command = room.dsh();
    command
        .args(["run", "hello", "--base-url", url, "--model", "small"])
        .args(arguments)
        .env("DEEPSEEK_API_KEY", KEY)
        .env("GATEWAY", format!("{KEY}-of-the-gateway"));
    ran(command).await
}

fn url(server: &ModelServer) -> String {
    format!("{}/v1", server.url())
}

fn tool_results(request: &Request) -> Vec<&str> {
    let messages = request.body["messages"].as_array().into_iter().flatten();
    let results = messages.filter(|message| message["role"] == "tool");
    results
        .filter_map(|message| message["content"].as_str())
        .collect()
}

#[tokio::test]
async fn a_real_conversation_with_a_task_and_its_notice() {
    let room = Room::new();
    let start =
        json!({"command": format!("{GATED}echo built"), "description": "Build", "run_in_background": true});
    let server = ModelServer::start(
        Wire::Chat,
        [
            Turn::Call("bash".to_owned(), start),
            Turn::text("I wait for it."),
            Turn::Call("task_output".to_owned(), json!({"task_id": "bash-1"})),
            Turn::text("It is built."),
        ],
    )
    .await;
    let url = url(&server);
    let arguments = [
        "hello",
        "--base-url",
        &url,
        "--model",
        "small",
        "--output-format",
        "json",
    ];
    let running = room.running(&[arguments.as_slice(), &["--session", "s.jsonl"]].concat());
    running.rests(1).await;
    room.go();
    let ran = running.ended().await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let result = &ran.lines()[0];
    assert_eq!(result["result"], "It is built.");
    assert_eq!(
        result["usage"],
        json!({"input_tokens": 40, "cache_read_tokens": 0, "output_tokens": 20})
    );

    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert_eq!(requests[0].body["model"], "small");
    let system = requests[0].body["messages"][0]["content"]
        .as_str()
        .expect("a system prompt");
    assert!(system.contains(&room.work().display().to_string()), "{system}");
    let tools = requests[0].body["tools"].as_array().expect("tools").iter();
    let tools: Vec<_> = tools
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    let expected = [
        "bash",
        "subagent",
        "subagent_fork",
        "task_kill",
        "task_list",
        "task_output",
    ];
    assert_eq!(tools, expected);
    assert!(tool_results(&requests[3]).contains(&"built\n[status: completed, exit code: 0]"));
    room.assert_empty();
}

#[tokio::test]
async fn a_key_goes_to_the_url_that_it_is_for_and_to_no_command() {
    let room = Room::new();
    let show = || {
        Turn::Call(
            "bash".to_owned(),
            json!({"command": "env", "description": "Show the environment"}),
        )
    };
    let server = ModelServer::start(
        Wire::Chat,
        [show(), Turn::text("Seen."), show(), Turn::text("Seen.")],
    )
    .await;
    let unnamed = asks(&room, &url(&server), &[]).await;
    assert_eq!(unnamed.code, Some(0), "{unnamed:?}");
    let named = asks(
        &room,
        &url(&server),
        &["--api-key-env", "GATEWAY", "--session", "s.jsonl"],
    )
    .await;
    assert_eq!(named.code, Some(0), "{named:?}");

    let requests = server.requests();
    assert_eq!(requests[0].header("authorization"), None);
    let bearer = format!("Bearer {KEY}-of-the-gateway");
    assert_eq!(requests[2].header("authorization"), Some(bearer.as_str()));
    for (request, key) in [(&requests[1], "DEEPSEEK_API_KEY"), (&requests[3], KEY)] {
        let environment = tool_results(request).join("\n");
        assert!(environment.contains("DSH_SHELL=1"), "{environment}");
        assert!(!environment.contains(key), "{environment}");
    }
    let log = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
    assert!(!log.contains(KEY));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let room = Room::new();
    let elsewhere = ModelServer::start(Wire::Chat, [Turn::text("Thank you for the key.")]).await;
    let to = format!("{}/chat/completions", url(&elsewhere));
    let server = ModelServer::start(Wire::Chat, [Turn::Redirect(to)]).await;
    let ran = asks(&room, &url(&server), &["--api-key-env", "GATEWAY"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("307"), "{ran:?}");
    assert_eq!(elsewhere.requests().len(), 0);
    assert_eq!(
        server.requests().len(),
        1,
        "asking again would lead to the same place"
    );
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_will_not_is_not() {
    let room = Room::new();
    let busy = Turn::Error(429, "slow down".to_owned());
    let cut = Turn::Events(vec![
        json!({"choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": null}]}),
    ]);
    let server = ModelServer::start(Wire::Chat, [busy, cut, Turn::text("Hello.")]).await;
    let passed = asks(&room, &url(&server), &["--output-format", "stream-json"]).await;
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert_eq!(server.requests().len(), 3);
    let told: Vec<&str> = passed.stderr.lines().collect();
    assert_eq!(told.len(), 2, "{passed:?}");
    for (line, why) in told.into_iter().zip(["slow down", ""]) {
        assert!(
            line.starts_with("dsh: model request failed, next try in "),
            "{passed:?}"
        );
        assert!(line.contains("s: ") && line.contains(why), "{passed:?}");
    }
    let texts = passed.of_type("text").into_iter();
    assert_eq!(
        texts.map(|line| line["text"].clone()).collect::<Vec<_>>(),
        ["Hello."],
        "what was cut was not said"
    );

    let refusal = Turn::Error(401, format!("no such key: {KEY}-of-the-gateway"));
    let server = ModelServer::start(Wire::Chat, [refusal]).await;
    let refused = asks(&room, &url(&server), &["--api-key-env", "GATEWAY"]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("no such key"), "{refused:?}");
    assert!(!refused.stderr.contains(KEY), "{refused:?}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_talks_nonsense_fails_the_turn() {
    let nonsense = Turn::Events(vec![json!({"weather": "fine"}), json!([1, 2])]);
    let lying = ModelServer::start(Wire::Chat, vec![nonsense; 5]).await;
    let gone = ModelServer::start(Wire::Chat, []).await;
    let (lying_url, gone_url) = (url(&lying), url(&gone));
    drop(gone);
    let (one, other) = (Room::new(), Room::new());
    let (lied, gone) = tokio::join!(asks(&one, &lying_url, &[]), asks(&other, &gone_url, &[]));
    assert_eq!(lied.code, Some(1), "{lied:?}");
    assert_eq!(lying.requests().len(), 5);
    assert!(lied.stderr.contains("dsh: "), "{lied:?}");
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("cannot connect"), "{gone:?}");
    assert_eq!((lied.stdout.as_str(), gone.stdout.as_str()), ("", ""));
}

#[tokio::test]
async fn a_signal_gives_up_a_request_that_is_not_answered() {
    let room = Room::new();
    let server = ModelServer::start(Wire::Chat, [Turn::silence()]).await;
    let url = url(&server);
    let arguments = [
        "hi",
        "--base-url",
        &url,
        "--output-format",
        "json",
        "--session",
        "s.jsonl",
    ];
    let running = room.running(&arguments);
    server.asked(1).await;
    running.signal(Signal::SIGINT);
    let ran = running.ended().await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(ran.lines()[0]["status"], "cancelled");
    let log = std::fs::read_to_string(room.file("s.jsonl")).expect("the log");
    assert!(log.contains(r#""kind":"disposed""#), "{log}");
    room.assert_empty();
}
