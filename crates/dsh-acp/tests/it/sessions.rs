//! Sessions: new, loaded, closed, and their one option.

use std::fs;

use serde_json::{Value, json};

use crate::editor::{House, runs, starts};

#[tokio::test]
async fn the_agent_says_what_it_can_do() {
    let house = House::new(json!([]));
    let mut editor = house.silent(1 << 16);
    let hello = editor.initialize(json!({})).await;
    let result = &hello["result"];
    assert_eq!(result["protocolVersion"], 1);
    assert_eq!(
        result["agentInfo"],
        json!({"name": "dsh", "version": env!("CARGO_PKG_VERSION")})
    );
    assert_eq!(result["authMethods"], json!([]));
    let capabilities = &result["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], true);
    assert_eq!(
        capabilities["promptCapabilities"],
        json!({"image": false, "audio": false, "embeddedContext": false})
    );
    assert_eq!(capabilities["sessionCapabilities"]["close"], json!({}));
    let authenticated = editor.call("authenticate", json!({"methodId": "none"})).await;
    assert_eq!(authenticated["result"], json!({}));
}

#[tokio::test]
async fn an_editor_of_another_time_gets_version_1() {
    let house = House::new(json!([]));
    for version in [2, 99] {
        let mut editor = house.silent(1 << 16);
        let hello = editor
            .call("initialize", json!({"protocolVersion": version}))
            .await;
        assert_eq!(hello["result"]["protocolVersion"], 1, "{hello}");
    }
}

#[tokio::test]
async fn what_a_session_cannot_have_is_refused() {
    let house = House::new(json!([]));
    let mut editor = house.editor().await;
    let server = json!({"name": "x", "command": "/bin/true", "args": [], "env": []});
    for (params, reason) in [
        (
            json!({"cwd": "work", "mcpServers": []}),
            "cwd work is not absolute",
        ),
        (
            json!({"cwd": "/nowhere/at/all", "mcpServers": []}),
            "cwd /nowhere/at/all is not a directory",
        ),
        (
            json!({"cwd": "/dev/null", "mcpServers": []}),
            "cwd /dev/null is not a directory",
        ),
        (
            json!({"cwd": "/tmp", "mcpServers": [server]}),
            "mcpServers is not supported",
        ),
        (
            json!({"cwd": "/tmp", "mcpServers": [], "additionalDirectories": ["/var"]}),
            "additionalDirectories is not supported",
        ),
    ] {
        let error = editor.call("session/new", params).await["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert_eq!(error["message"], format!("Invalid params: {reason}"));
    }
}

#[tokio::test]
async fn a_loaded_session_shows_everything_again_and_goes_on() {
    let house = House::new(json!([
        {"reasoning": "Hm.", "text": "I look.", "tool_calls": [
            {"name": "bash", "arguments": {"command": "echo hello", "description": "test"}},
        ]},
        starts("sleep 300"),
        {"text": "Done.", "expect": []},
        {"text": "As I said."},
    ]));
    let mut first = house.session().await;
    let session = first.session.clone();
    assert_eq!(
        first.prompt("look around").await["result"]["stopReason"],
        "end_turn"
    );
    let closed = first.call("session/close", json!({"sessionId": session})).await;
    assert_eq!(closed["result"], json!({}));
    let shown: Vec<Value> = first.updates("tool_call");

    let mut second = house.editor().await;
    let loaded = second.load(&session).await;
    assert_eq!(loaded["result"]["configOptions"][0]["id"], "model", "{loaded}");
    assert_eq!(second.text("user_message_chunk"), "look around");
    assert_eq!(second.text("agent_thought_chunk"), "Hm.");
    assert!(second.text("agent_message_chunk").starts_with("I look.Done."));
    assert_eq!(
        second.updates("tool_call")[..2],
        shown[..2],
        "the same cards with the same ids"
    );
    assert_eq!(second.updates("tool_call_update").len(), 2);
    // In the order in which it happened, and before the answer to the load.
    let order: Vec<_> = second
        .seen
        .iter()
        .map(|message| message["params"]["update"]["sessionUpdate"].as_str().unwrap())
        .collect();
    assert_eq!(
        order[..4],
        [
            "user_message_chunk",
            "agent_thought_chunk",
            "agent_message_chunk",
            "tool_call"
        ]
    );
    let before = second.seen.len();
    assert_eq!(second.prompt("and?").await["result"]["stopReason"], "end_turn");
    let new: Vec<_> = second.seen.drain(before..).collect();
    assert!(
        !new.is_empty()
            && new
                .iter()
                .all(|message| message["params"]["update"]["sessionUpdate"] != "user_message_chunk")
    );
}

#[tokio::test]
async fn a_session_that_cannot_be_loaded_says_why() {
    let house = House::new(json!([{"text": "one"}]));
    let mut editor = house.session().await;
    let session = editor.session.clone();
    editor.prompt("hello").await;

    let message = |answer: &Value| {
        answer["error"]["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    let open = editor.load(&session).await;
    assert_eq!(open["error"]["code"], -32602);
    assert!(
        message(&open).contains("is open: close it before it is loaded"),
        "{open}"
    );

    let mut other = house.editor().await;
    let in_use = other.load(&session).await;
    assert!(message(&in_use).contains("is in use"), "{in_use}");

    for id in [
        "4e2b7c3a-0000-4000-8000-000000000000",
        "../../etc/passwd",
        "",
        "..",
        "a/b",
        "\u{0}",
    ] {
        let unknown = other.load(id).await;
        assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
        assert!(message(&unknown).contains("there is no session"), "{unknown}");
    }

    editor.call("session/close", json!({"sessionId": session})).await;
    let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
    let elsewhere = other.call("session/load", params).await;
    assert_eq!(elsewhere["error"]["code"], -32602);
    assert!(message(&elsewhere).contains("not in /"), "{elsewhere}");

    let log = house.log_of(&session);
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without_one: Vec<&str> = [&lines[..2], &lines[3..]].concat();
    fs::write(&log, without_one.join("\n") + "\n").unwrap();
    let corrupt = other.load(&session).await;
    assert_eq!(corrupt["error"]["code"], -32603);
    assert!(message(&corrupt).contains("is damaged at line 3"), "{corrupt}");

    fs::write(&log, text).unwrap();
    assert!(
        other.load(&session).await["result"].is_object(),
        "nothing of the failures is left"
    );
}

#[tokio::test]
async fn a_session_of_a_dead_harness_is_shown_with_what_it_left() {
    let house = House::new(json!([runs("true"), {"text": "one"}, {"text": "two"}]));
    let mut editor = house.session().await;
    let session = editor.session.clone();
    editor.prompt("hello").await;
    editor.call("session/close", json!({"sessionId": session})).await;
    // As if it had died with the call running: everything up to the call, without its result.
    let log = house.log_of(&session);
    let text = fs::read_to_string(&log).unwrap();
    let until: Vec<&str> = text
        .lines()
        .take_while(|line| !line.contains("\"tool/result\""))
        .collect();
    fs::write(&log, until.join("\n") + "\n").unwrap();
    let mut second = house.editor().await;
    second.loaded(&session).await;
    let ended = second.updates("tool_call_update");
    assert_eq!(ended[0]["status"], "failed");
    assert_eq!(
        second.updates("tool_call")[0]["toolCallId"],
        ended[0]["toolCallId"]
    );
    assert_eq!(second.prompt("go on").await["result"]["stopReason"], "end_turn");
    // And with the call not even begun.
    second.call("session/close", json!({"sessionId": session})).await;
    let until: Vec<&str> = text
        .lines()
        .take_while(|line| !line.contains("\"tool/call\""))
        .collect();
    fs::write(&log, until.join("\n") + "\n").unwrap();
    let mut third = house.editor().await;
    third.loaded(&session).await;
    assert_eq!(third.updates("tool_call").len(), 1, "a result has a card");
    assert_eq!(third.updates("tool_call_update")[0]["status"], "failed");
}

#[tokio::test]
async fn the_model_is_an_option_and_stays_chosen() {
    let house = House::new(json!([{"text": "one"}]));
    let mut editor = house.editor().await;
    let opened = editor.open().await;
    let session = editor.session.clone();
    let option = &opened["result"]["configOptions"][0];
    assert_eq!(
        (&option["id"], &option["category"], &option["type"]),
        (&json!("model"), &json!("model"), &json!("select"))
    );
    let values: Vec<_> = option["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["value"].clone())
        .collect();
    assert_eq!(values.len(), 2);
    assert_eq!(
        (&option["currentValue"], &values[1]),
        (&values[0], &json!("scripted/other"))
    );

    let set = |config: &str, value: Value| json!({"sessionId": session, "configId": config, "value": value});
    for (config, value) in [("mode", json!("x")), ("model", json!("nobody/nothing"))] {
        let refused = editor.call("session/set_config_option", set(config, value)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let chosen = editor
        .call("session/set_config_option", set("model", json!("scripted/other")))
        .await;
    assert_eq!(
        chosen["result"]["configOptions"][0]["currentValue"],
        "scripted/other"
    );
    editor.prompt("hello").await;
    let log = fs::read_to_string(house.log_of(&session)).unwrap();
    assert!(log.contains(r#""provider":"scripted","model":"other""#), "{log}");

    editor.call("session/close", json!({"sessionId": session})).await;
    let loaded = editor.load(&session).await;
    assert_eq!(
        loaded["result"]["configOptions"][0]["currentValue"],
        "scripted/other"
    );
}

#[tokio::test]
async fn closing_a_session_ends_its_tasks_and_no_others() {
    let house = House::new(json!([
        starts("echo $$ > one; exec sleep 300"), {"text": "ok"},
        starts("echo $$ > two; exec sleep 300"), {"text": "ok"},
    ]));
    let mut editor = house.session().await;
    let first = editor.session.clone();
    editor.prompt("one").await;
    editor.open().await;
    editor.prompt("two").await;
    let [one, two] = ["one", "two"].map(|name| house.file(name));
    let pid = |file: &std::path::Path| dsh_testkit::process::read_pid(file);
    dsh_testkit::eventually("both run", || pid(&one).is_some() && pid(&two).is_some()).await;
    editor.call("session/close", json!({"sessionId": first})).await;
    assert!(dsh_testkit::process::is_gone(pid(&one).unwrap()));
    assert!(!dsh_testkit::process::is_gone(pid(&two).unwrap()));
    let gone = editor
        .call(
            "session/prompt",
            json!({"sessionId": first, "prompt": [{"type": "text", "text": "x"}]}),
        )
        .await;
    assert_eq!(gone["error"]["code"], -32002, "{gone}");
}

#[tokio::test]
async fn the_sessions_of_a_directory_are_listed_with_what_was_asked() {
    let house = House::new(json!([{"text": "one"}, {"text": "two"}]));
    let mut editor = house.editor().await;
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(listed["result"]["sessions"], json!([]), "{listed}");
    editor.open().await;
    editor.prompt("build it\nand more").await;
    let first = editor.session.clone();
    editor.open().await;
    editor.prompt("test \u{202e}it").await;
    let second = editor.session.clone();
    editor.open().await;
    fs::write(house.file("sessions").join("stray.jsonl"), "{}").unwrap();

    let listed = editor.call("session/list", json!({"cwd": house.cwd()})).await;
    let mut sessions = listed["result"]["sessions"].as_array().unwrap().clone();
    sessions.sort_by_key(|session| session["title"].to_string());
    let shown = |at: usize| {
        let session: &Value = &sessions[at];
        assert!(session["updatedAt"].as_str().unwrap().ends_with('Z'), "{session}");
        assert_eq!(session["cwd"], json!(house.cwd()));
        (
            session["sessionId"].as_str().unwrap(),
            session["title"].as_str().unwrap(),
        )
    };
    assert_eq!(sessions.len(), 2, "one without a turn is nowhere yet: {listed}");
    assert_eq!(shown(0), (&*first, "build it"));
    assert_eq!(shown(1), (&*second, r"test \u{202e}it"));
    let elsewhere = editor.call("session/list", json!({"cwd": "/"})).await;
    assert_eq!(elsewhere["result"]["sessions"], json!([]));
    let refused = editor.call("session/list", json!({"cursor": "x"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
