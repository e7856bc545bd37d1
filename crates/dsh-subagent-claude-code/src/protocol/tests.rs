use dsh_llm::text_of;
use serde_json::json;

use super::*;

const UNKNOWN: &str = "Product subagent failure (product: Claude Code; stage: query-run; category: unknown";

/// What no diagnostic may hold, as it stands in what the product says.
const SECRETS: [&str; 2] = ["SECRET_TOKEN", "/private/secret.txt"];

type Never = std::convert::Infallible;

/// A conversation of these lines; everything that they asked for.
fn heard(mode: PermissionMode, lines: &[Value]) -> (Protocol, Vec<Effect>) {
    let mut protocol = Protocol::new(mode);
    let mut effects = Vec::new();
    for line in lines {
        effects.extend(protocol.line(&line.to_string()));
    }
    (protocol, effects)
}

/// What came of these lines, the stream closed and the product gone with code 0: the answer, or the failure's text.
fn outcome(lines: &[Value]) -> Result<String, String> {
    ended(lines, Some(LeaderExit::Code(0)))
}

fn ended(lines: &[Value], exit: Option<LeaderExit>) -> Result<String, String> {
    let (protocol, _) = heard(PermissionMode::DontAsk, lines);
    let outcome = protocol.conclude(Ending::<Never>::Closed, exit);
    outcome
        .map(|output| text_of(&output))
        .map_err(|failure| failure.to_string())
}

fn failure(stage: &str, category: &str) -> Result<String, String> {
    Err(format!(
        "Product subagent failure (product: Claude Code; stage: {stage}; category: {category})"
    ))
}

fn success(text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": text})
}

fn error(subtype: &str) -> Value {
    json!({"type": "result", "subtype": subtype, "is_error": true, "errors": SECRETS})
}

fn asks(request: Value) -> Value {
    json!({"type": "control_request", "request_id": "r-1", "request": request})
}

fn background(ids: &[&str]) -> Value {
    let tasks: Vec<Value> = ids
        .iter()
        .map(|id| json!({"task_id": id, "task_type": "local_bash"}))
        .collect();
    json!({"type": "system", "subtype": "background_tasks_changed", "tasks": tasks})
}

fn notification(id: &str, status: &str) -> Value {
    json!({"type": "system", "subtype": "task_notification", "task_id": id, "status": status})
}

#[test]
fn s239_the_product_is_up_when_it_has_answered_our_request() {
    let answered = |id: &str, subtype: &str| json!({"type": "control_response", "response": {"subtype": subtype, "request_id": id, "error": "no"}});
    let (_, effects) = heard(
        PermissionMode::DontAsk,
        &[
            json!({"type": "keep_alive"}),
            answered("another", "success"),
            json!({"type": "system", "subtype": "init"}),
        ],
    );
    assert_eq!(effects, []);
    let (_, effects) = heard(PermissionMode::DontAsk, &[answered("initialize", "success")]);
    assert_eq!(effects, [Effect::Up]);
    let (_, effects) = heard(PermissionMode::DontAsk, &[answered("initialize", "error")]);
    assert_eq!(effects, [Effect::Refused]);
}

#[test]
fn s230_every_request_has_its_answer_and_its_fact() {
    let secret = SECRETS.join(" ");
    let requests = [
        (
            json!({"subtype": "can_use_tool", "tool_name": "Write", "tool_use_id": "t-1", "input": {"file_path": secret}}),
            json!({"behavior": "deny", "toolUseID": "t-1"}),
            "tool permission; decision: denied): the provider does not request human approval",
        ),
        (
            json!({"subtype": "elicitation", "mcp_server_name": "s", "message": secret}),
            json!({"action": "decline"}),
            "MCP elicitation; decision: declined): the provider does not collect interactive MCP input",
        ),
        (
            json!({"subtype": "request_user_dialog", "dialog_kind": "refusal_fallback_prompt", "payload": {"x": secret}}),
            json!({"behavior": "cancelled"}),
            "user dialog; decision: cancelled): the provider does not render blocking dialogs",
        ),
    ];
    for (request, expected, said) in requests {
        let (protocol, mut effects) = heard(PermissionMode::Auto, &[asks(request)]);
        let Some(Effect::Send(mut answer)) = effects.pop() else {
            panic!("no answer: {effects:?}");
        };
        assert!(!answer.to_string().contains("SECRET"), "{answer}");
        let body = answer["response"]["response"].take();
        let envelope = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": "r-1", "response": null
        }});
        assert_eq!(answer, envelope);
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(&body[name], value);
        }
        let denied = body["behavior"] == "deny";
        assert_eq!(
            denied,
            body["message"].as_str().is_some_and(|text| !text.is_empty())
        );
        assert_eq!(
            protocol.fact().expect("a fact"),
            format!("Claude Code unattended decision (mode: auto; request: {said}")
        );
    }
}

#[test]
fn s230_what_is_not_configured_is_refused_and_decides_nothing() {
    for subtype in [
        "hook_callback",
        "mcp_message",
        "oauth_token_refresh",
        "host_auth_token_refresh",
    ] {
        let (protocol, effects) = heard(PermissionMode::DontAsk, &[asks(json!({"subtype": subtype}))]);
        let error = format!("Unsupported control request subtype: {subtype}");
        let refusal = json!({"type": "control_response", "response": {
            "subtype": "error", "request_id": "r-1", "error": error
        }});
        assert_eq!(effects, [Effect::Send(refusal)]);
        assert_eq!(protocol.fact(), None);
    }
}

#[test]
fn s238_a_denial_of_the_product_is_only_observed() {
    let denied =
        json!({"type": "system", "subtype": "permission_denied", "tool_name": "Write", "message": SECRETS});
    let (protocol, effects) = heard(PermissionMode::DontAsk, std::slice::from_ref(&denied));
    assert_eq!(effects, []);
    assert_eq!(
        protocol.fact().as_deref(),
        Some(
            "Claude Code unattended decision (mode: dontAsk; request: tool permission; decision: denied): Claude Code denied \
             the request before an interactive prompt"
        )
    );
    assert_eq!(outcome(&[denied, success("done")]), Ok("done".to_owned()));
}

#[test]
fn s241_the_latest_fact_counts() {
    let denied = json!({"type": "system", "subtype": "permission_denied"});
    let (protocol, _) = heard(
        PermissionMode::Plan,
        &[
            denied.clone(),
            asks(json!({"subtype": "elicitation"})),
            asks(json!({"subtype": "hook_callback"})),
        ],
    );
    assert!(protocol.fact().expect("a fact").contains("MCP elicitation"));
    let (protocol, _) = heard(
        PermissionMode::Plan,
        &[asks(json!({"subtype": "elicitation"})), denied],
    );
    assert!(
        protocol
            .fact()
            .expect("a fact")
            .ends_with("before an interactive prompt")
    );
}

#[test]
fn s237_only_a_success_without_error_and_with_words_is_one() {
    assert_eq!(
        outcome(&[success(" the answer\n")]),
        Ok(" the answer\n".to_owned())
    );
    for subtype in [
        "error_during_execution",
        "error_max_turns",
        "error_max_budget_usd",
        "error_max_structured_output_retries",
    ] {
        assert_eq!(outcome(&[error(subtype)]), failure("query-run", subtype));
    }
    assert_eq!(outcome(&[error("SECRET_TOKEN")]), failure("query-run", "unknown"));
}

#[test]
fn s237_a_success_that_is_too_long_is_none() {
    let longest = "x".repeat(MAX_ANSWER_BYTES);
    assert_eq!(outcome(&[success(&longest)]), Ok(longest.clone()));
    assert_eq!(
        outcome(&[success("so far"), success(&format!("{longest}x"))]),
        failure("query-run", "answer-too-long")
    );
}

#[test]
fn s244_a_success_that_is_none_and_no_result_at_all() {
    let flagged = |status: Value| json!({"type": "result", "subtype": "success", "is_error": true, "result": "SECRET_TOKEN", "api_error_status": status});
    assert_eq!(
        outcome(&[flagged(Value::Null)]),
        failure("query-run", "invalid-success")
    );
    assert_eq!(
        outcome(&[flagged(json!(400))]),
        failure("query-run", "invalid-success; HTTP status: 400")
    );
    assert_eq!(
        outcome(&[flagged(json!("SECRET_TOKEN"))]),
        failure("query-run", "invalid-success")
    );
    for blank in ["", " \n\t"] {
        assert_eq!(
            outcome(&[success(blank)]),
            failure("query-run", "invalid-success"),
            "{blank:?}"
        );
    }
    assert_eq!(outcome(&[]), failure("query-run", "missing-result"));
}

#[test]
fn s238_the_last_result_that_says_anything_decides() {
    assert_eq!(
        outcome(&[success("first"), success("second")]),
        Ok("second".to_owned())
    );
    assert_eq!(
        outcome(&[success("first"), success(" ")]),
        Ok("first".to_owned()),
        "a turn without words"
    );
    assert_eq!(
        outcome(&[success("first"), error("error_max_turns")]),
        failure("query-run", "error_max_turns")
    );
    assert_eq!(
        outcome(&[error("error_during_execution"), success("after all")]),
        Ok("after all".to_owned())
    );
    assert_eq!(
        outcome(&[error("error_max_turns"), success("")]),
        failure("query-run", "error_max_turns")
    );
}

#[test]
fn the_input_is_closed_once_at_the_first_result_and_nothing_is_written_behind_it() {
    let (protocol, effects) = heard(
        PermissionMode::AcceptEdits,
        &[
            background(&["b1"]),
            success("first"),
            asks(json!({"subtype": "can_use_tool"})),
            success("second"),
        ],
    );
    assert_eq!(effects, [Effect::CloseInput]);
    assert!(protocol.fact().is_some(), "what nobody answers is denied");
}

#[test]
fn what_still_ran_at_the_last_result_and_was_ended_is_told_behind_the_answer() {
    let first = [background(&["b1", "b2"]), success("first")];
    let answer = |lines: &[Value]| outcome(&[&first, lines].concat()).expect("an answer");
    assert_eq!(
        answer(&[
            background(&[]),
            notification("b1", "stopped"),
            notification("b2", "stopped")
        ]),
        "first\n[2 background tasks of Claude Code were ended with its run]"
    );
    assert_eq!(
        answer(&[background(&["b2"]), notification("b1", "completed"), success("")]),
        "first\n[1 background task of Claude Code was ended with its run]",
        "it said nothing of the other"
    );
    assert_eq!(
        answer(&[
            background(&["b2"]),
            notification("b1", "failed"),
            background(&[]),
            notification("b2", "completed")
        ]),
        "first"
    );
    assert_eq!(
        answer(&[background(&[]), notification("b1", "stopped"), success("second")]),
        "second",
        "its own affair, before the last result"
    );
    let (protocol, _) = heard(PermissionMode::DontAsk, &[first[0].clone(), success("first")]);
    let output = protocol
        .conclude(Ending::<Never>::Closed, None)
        .expect("an answer");
    assert_eq!(
        output[0],
        ContentBlock::text("first"),
        "the answer is a block of its own"
    );
}

#[test]
fn s243_a_stream_that_fails_behind_a_result_has_no_answer() {
    let answered = [success("the answer")];
    assert_eq!(
        ended(&answered, Some(LeaderExit::Code(3))),
        Err(format!("{UNKNOWN}; exit code: 3)"))
    );
    assert_eq!(
        ended(&answered, Some(LeaderExit::GuardLost)),
        Err(format!("{UNKNOWN})"))
    );
    for unseen in [None, Some(LeaderExit::Lost)] {
        assert_eq!(ended(&answered, unseen), Ok("the answer".to_owned()));
    }
    let (protocol, _) = heard(PermissionMode::DontAsk, &answered);
    let broken = std::io::Error::other("SECRET_TOKEN");
    let failure = protocol
        .conclude(Ending::Unreadable(broken), Some(LeaderExit::Code(0)))
        .expect_err("no answer");
    assert_eq!(failure.to_string(), format!("{UNKNOWN}; exit code: 0)"));
    let source = std::error::Error::source(&failure).expect("what is behind it");
    assert_eq!(source.to_string(), "SECRET_TOKEN");
}

#[test]
fn s245_an_exit_before_any_result_is_told_as_far_as_it_was_seen() {
    let lines = [json!({"type": "system", "subtype": "init"})];
    assert_eq!(
        ended(&lines, Some(LeaderExit::Code(9))),
        failure("process", "process-exit; exit code: 9")
    );
    assert_eq!(
        ended(&lines, Some(LeaderExit::GuardLost)),
        failure("process", "process-exit")
    );
    assert_eq!(
        ended(&lines, Some(LeaderExit::Code(0))),
        failure("query-run", "missing-result")
    );
    let unreadable = |exit| {
        let (protocol, _) = heard(PermissionMode::DontAsk, &lines);
        let ending = Ending::Unreadable(std::io::Error::other("gone"));
        protocol
            .conclude(ending, exit)
            .expect_err("no answer")
            .to_string()
    };
    assert!(
        unreadable(Some(LeaderExit::Code(1)))
            .contains("stage: process; category: process-exit; exit code: 1")
    );
    assert!(unreadable(None).contains("stage: query-run; category: unknown)"));
}

#[test]
fn what_is_no_message_of_interest_asks_for_nothing() {
    let mut protocol = Protocol::new(PermissionMode::DontAsk);
    for line in [
        "",
        "not JSON",
        "null",
        "[1]",
        "{}",
        r#"{"type": 1}"#,
        r#"{"type": "transcript_mirror"}"#,
        r#"{"type": "control_cancel_request", "request_id": "r-1"}"#,
        r#"{"type": "system", "subtype": "api_retry"}"#,
        r#"{"type": "system", "subtype": "background_tasks_changed"}"#,
        r#"{"type": "control_response"}"#,
    ] {
        assert_eq!(protocol.line(line), [], "{line}");
    }
    assert_eq!(protocol.fact(), None);
}
