//! What a turn comes to.

use dsh_subagent::StopReason;
use dsh_subagent_process::MAX_ANSWER_BYTES;

use super::*;

#[test]
fn s163_the_last_final_answer_of_our_turn_is_the_answer() {
    let mut played = Played::begun();
    assert_eq!(
        played.said,
        [
            json!({"jsonrpc": "2.0", "id": 3, "method": "turn/start", "params": {
                "threadId": THREAD,
                "input": [
                    {"type": "text", "text": "the task", "text_elements": []},
                    {"type": "text", "text": "its rest", "text_elements": []}
                ]
            }})
        ]
    );
    let mut strange = final_answer("of another thread");
    strange["params"]["threadId"] = json!("thread-2");
    played
        .hear(response(TURN))
        .hear(notification(
            "turn/started",
            json!({"threadId": THREAD, "turn": {"id": TURN}}),
        ))
        .hear(final_answer("first"))
        .hear(strange)
        .hear(item_of(
            "turn-2",
            message(json!("final_answer"), "of another turn"),
        ))
        .hear(item(json!({"type": "reasoning", "summary": ["not this"]})))
        .hear(final_answer("last"))
        .hear(item(message(json!("commentary"), "nor this")))
        .hear(item(message(Value::Null, "nor that")))
        .hear(completed_of(json!({"id": "turn-2", "status": "failed"})));
    assert!(played.turn.end().is_none());
    played
        .hear(completed())
        .hear(completed())
        .hear(final_answer("too late"));
    assert_eq!(played.answer().as_deref(), Some("last"));
    assert_eq!(played.said.len(), 1, "nothing was asked");
}

#[test]
fn s164_without_a_final_answer_it_is_the_last_message_without_a_phase() {
    let mut played = Played::confirmed();
    let unphased = json!({"type": "agentMessage", "text": "second"});
    played
        .hear(item(message(Value::Null, "first")))
        .hear(item(unphased))
        .hear(item(message(json!("commentary"), "third")))
        .hear(completed());
    assert_eq!(played.answer().as_deref(), Some("second"));
}

#[test]
fn an_answer_in_parts_is_all_of_them_and_its_end() {
    let part = |text: &str| item(message(json!("partial_answer"), text));
    let unphased = |text: &str| item(message(Value::Null, text));
    let cases = [
        (
            vec![part("one"), part("two"), final_answer("three")],
            "one\n\ntwo\n\nthree",
        ),
        (
            vec![part("one"), final_answer("two"), final_answer("three")],
            "one\n\nthree",
        ),
        (vec![part("one"), part(" \n"), part("two")], "one\n\ntwo"),
        (vec![part("one"), final_answer("")], "one"),
        (
            vec![unphased("I look."), part("one"), unphased("two")],
            "one\n\ntwo",
        ),
        (vec![unphased("I look."), part("one")], "one"),
    ];
    for (said, answer) in cases {
        let mut played = Played::confirmed();
        for message in said {
            played.hear(message);
        }
        played.hear(completed());
        assert_eq!(played.answer().as_deref(), Some(answer));
    }

    let half = "x".repeat(MAX_ANSWER_BYTES / 2 + 1);
    let mut played = Played::confirmed();
    played
        .hear(part(&half))
        .hear(final_answer(&half))
        .hear(completed());
    assert_eq!(played.failure().0, line("turn", "answer-too-long"));
    assert_eq!(played.turn.output(), Some(half));
}

#[test]
fn s165_every_word_is_its_own_category_and_only_a_full_context_is_max_tokens() {
    for word in [
        "contextWindowExceeded",
        "sessionBudgetExceeded",
        "usageLimitExceeded",
        "rateLimitExceeded",
        "flexUnavailable",
        "serverOverloaded",
        "modelNotFound",
        "policyCapacityUnavailable",
        "inferenceHookDenied",
        "cyberPolicy",
        "bioPolicy",
        "misalignmentPolicyViolation",
        "tooManyDenials",
        "internalServerError",
        "unauthorized",
        "badRequest",
        "threadRollbackFailed",
        "sandboxError",
        "other",
    ] {
        let mut played = Played::confirmed();
        played
            .hear(final_answer("so far"))
            .hear(failed_with(&json!(word)));
        let text = format!("Codex turn ended with status failed: {word}");
        assert_eq!(played.failure(), (line("turn", word), text));
        let Some(End::Failed(stop, _)) = played.turn.end() else {
            panic!("it failed")
        };
        let expected = match word {
            "contextWindowExceeded" => StopReason::MaxTokens,
            _ => StopReason::Error,
        };
        assert_eq!(stop, expected, "{word}");
        assert_eq!(played.turn.output().as_deref(), Some("so far"));
    }
}

#[test]
fn s167_what_it_is_not_known_to_say_stays_unsaid() {
    for info in [
        json!("SECRET_TOKEN"),
        json!({"SECRET_TOKEN": {}}),
        json!({"httpConnectionFailed": null}),
    ] {
        let mut played = Played::confirmed();
        played.hear(failed_with(&info));
        let text = "Codex turn ended with status failed: unknown".to_owned();
        assert_eq!(played.failure(), (line("turn", "unknown"), text), "{info}");
    }
}

#[test]
fn an_answer_that_is_too_long_is_none() {
    let mut played = Played::confirmed();
    played
        .hear(final_answer("so far"))
        .hear(final_answer(&"x".repeat(MAX_ANSWER_BYTES + 1)))
        .hear(completed());
    let fault = format!("an answer of {} bytes", MAX_ANSWER_BYTES + 1);
    assert_eq!(played.failure(), (line("turn", "answer-too-long"), fault));
    assert_eq!(played.turn.output().as_deref(), Some("so far"));

    let mut played = Played::confirmed();
    let longest = "x".repeat(MAX_ANSWER_BYTES);
    played.hear(final_answer(&longest)).hear(completed());
    assert_eq!(played.answer(), Some(longest));
}

#[test]
fn s168_a_turn_without_an_id_is_none() {
    for bad in [
        json!({"id": 3, "result": {"turn": {"id": ""}}}),
        json!({"id": 3, "result": {"turn": {}}}),
        json!({"id": 3, "result": null}),
    ] {
        let mut played = Played::begun();
        played.hear(bad);
        let text = "invalid turn/start response".to_owned();
        assert_eq!(played.failure(), (line("turn-start", "unknown"), text));
    }
    let mut played = Played::begun();
    played.hear(json!({"id": 3, "error": {"code": -32600, "message": "SECRET_TOKEN"}}));
    assert_eq!(played.failure().0, line("turn-start", "unknown"));
}

#[test]
fn s169_a_turn_without_an_answer_is_none() {
    let text_of_a_message = |text: Value| item(json!({"type": "agentMessage", "text": text}));
    let ended = |status: Value| completed_of(json!({"id": TURN, "status": status}));
    let cases = [
        (vec![completed()], "Codex completed without a final answer"),
        (
            vec![
                item(message(Value::Null, "unphased")),
                final_answer(" \n"),
                completed(),
            ],
            "Codex completed without a final answer",
        ),
        (
            vec![text_of_a_message(json!(7)), final_answer("too late"), completed()],
            "invalid agent message",
        ),
        (
            vec![item(message(json!("SECRET_TOKEN"), "x"))],
            "unknown agent message phase",
        ),
        (
            vec![completed_of(
                json!({"id": TURN, "status": "failed", "error": "SECRET_TOKEN"}),
            )],
            "Codex turn ended with status failed: unknown",
        ),
        (
            vec![ended(json!("interrupted"))],
            "Codex turn ended with status interrupted",
        ),
        (vec![ended(json!("inProgress"))], "invalid terminal turn status"),
        (vec![ended(json!(null))], "invalid terminal turn status"),
    ];
    for (frames, text) in cases {
        let mut played = Played::confirmed();
        for frame in frames {
            played.hear(frame);
        }
        assert_eq!(played.failure(), (line("turn", "unknown"), text.to_owned()));
    }
}

#[test]
fn s170_an_end_of_no_thread_is_a_fault() {
    for params in [
        Value::Null,
        json!({"threadId": null}),
        json!({"threadId": THREAD, "turn": {"id": null}}),
    ] {
        let mut played = Played::confirmed();
        played.hear(notification("turn/completed", params));
        assert_eq!(played.failure().1, "invalid turn/completed thread id");
    }
}

#[test]
fn s184_only_an_open_turn_is_interrupted() {
    let mut played = Played::begun();
    assert_eq!(played.turn.interrupt(), None);
    played.hear(response(TURN));
    let interrupt = json!({"jsonrpc": "2.0", "id": 4, "method": "turn/interrupt", "params": {
        "threadId": THREAD, "turnId": TURN
    }});
    assert_eq!(played.turn.interrupt(), Some(interrupt));
    played.hear(json!({"id": 4, "error": {"code": -32603, "message": "no"}}));
    assert!(played.turn.end().is_none(), "a refused interrupt says nothing");
    played.hear(final_answer("done")).hear(completed());
    assert_eq!(played.turn.interrupt(), None);
}

#[test]
fn s185_what_does_not_concern_the_turn_is_not_heard() {
    let mut played = Played::confirmed();
    for method in [
        "thread/started",
        "warning",
        "item/started",
        "item/agentMessage/delta",
        "error",
        "guardianWarning",
    ] {
        let params = json!({"threadId": THREAD, "turnId": TURN, "willRetry": true, "delta": "SECRET_TOKEN"});
        played.hear(notification(method, params));
    }
    played.hear(json!({"id": 99, "result": {}}));
    played.hear(response("turn-2"));
    assert!(played.turn.end().is_none());
    for line in ["", "not JSON", "[]", "7", r#"{"id": 3}"#, r#"{"method": 7}"#] {
        assert_eq!(Frame::parse(line), None, "{line}");
    }
    assert_eq!((played.said.len(), played.turn.fact()), (1, None));
}
