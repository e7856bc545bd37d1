//! Turns that are played: what the app server says, in which order, and what that comes to.

use dsh_subagent::StopReason;
use serde_json::json;

use super::*;

const THREAD: &str = "thread-1";
const TURN: &str = "turn-1";

/// A turn, and the answers that it gave.
struct Played {
    turn: Turn,
    said: Vec<Value>,
}

impl Played {
    /// `turn/start` was sent.
    fn begun() -> Self {
        let (turn, start) = Turn::begin(THREAD.to_owned(), &["the task".to_owned(), "its rest".to_owned()]);
        Self {
            turn,
            said: vec![start],
        }
    }

    /// And answered.
    fn confirmed() -> Self {
        let mut played = Self::begun();
        played.hear(response(TURN));
        played
    }

    fn hear(&mut self, frame: Value) -> &mut Self {
        let frame = Frame::parse(&frame.to_string()).expect("a frame");
        self.turn.hear(frame, &mut self.said);
        self
    }

    fn failure(&self) -> (String, String) {
        match self.turn.end() {
            Some(End::Failed(failure, fault)) => (failure.to_string(), fault.to_string()),
            other => panic!("no failure: {other:?}"),
        }
    }

    fn answer(&self) -> Option<String> {
        match self.turn.end() {
            Some(End::Answered(answer)) => Some(answer),
            Some(End::Failed(..)) | None => None,
        }
    }

    /// The refusals among what it said.
    fn refused(&self) -> Vec<&Value> {
        let errors = self.said.iter().map(|frame| &frame["error"]["code"]);
        errors.filter(|code| !code.is_null()).collect()
    }
}

fn line(stage: &str, category: &str) -> String {
    format!("Product subagent failure (product: Codex; stage: {stage}; category: {category})")
}

fn response(turn: &str) -> Value {
    json!({"id": 3, "result": {"turn": {"id": turn, "status": "inProgress"}}})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"method": method, "params": params})
}

fn item_of(turn: &str, item: Value) -> Value {
    notification(
        "item/completed",
        json!({"threadId": THREAD, "turnId": turn, "item": item}),
    )
}

fn item(item: Value) -> Value {
    item_of(TURN, item)
}

fn message(phase: Value, text: &str) -> Value {
    json!({"type": "agentMessage", "id": "message-1", "phase": phase, "text": text})
}

fn final_answer(text: &str) -> Value {
    item(message(json!("final_answer"), text))
}

fn completed_of(turn: Value) -> Value {
    notification("turn/completed", json!({"threadId": THREAD, "turn": turn}))
}

fn completed() -> Value {
    completed_of(json!({"id": TURN, "status": "completed"}))
}

fn failed_with(info: &Value) -> Value {
    let error = json!({"message": "SECRET_TOKEN in /private/secret.txt", "codexErrorInfo": info});
    completed_of(json!({"id": TURN, "status": "failed", "error": error}))
}

fn asks(method: &str, more: Value) -> Value {
    let mut params =
        json!({"threadId": THREAD, "turnId": TURN, "itemId": "item-1", "reason": "SECRET_TOKEN"});
    let more = more.as_object().cloned().unwrap_or_default();
    params.as_object_mut().expect("an object").extend(more);
    json!({"id": "asked-1", "method": method, "params": params})
}

fn declined(kind: &str) -> Value {
    json!({"type": kind, "status": "declined", "command": "cat /private/secret.txt"})
}

const COMMAND: &str = "item/commandExecution/requestApproval";
const FILE: &str = "item/fileChange/requestApproval";

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
    assert_eq!(played.turn.end(), None);
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
fn s165_every_word_is_its_own_category_and_only_a_full_context_is_max_tokens() {
    for word in [
        "contextWindowExceeded",
        "sessionBudgetExceeded",
        "usageLimitExceeded",
        "serverOverloaded",
        "cyberPolicy",
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
        let Some(End::Failed(failure, _)) = played.turn.end() else {
            panic!("it failed")
        };
        let stop = match word {
            "contextWindowExceeded" => StopReason::MaxTokens,
            _ => StopReason::Error,
        };
        assert_eq!(failure.stop(), stop, "{word}");
        assert_eq!(played.turn.output(), Some("so far"));
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
fn s171_a_request_that_nobody_can_answer_beats_a_completed_turn() {
    let unsupported = || asks("item/tool/call", json!({}));
    let orders = [
        [unsupported(), final_answer("done"), completed(), response(TURN)],
        [final_answer("done"), completed(), unsupported(), response(TURN)],
        [response(TURN), final_answer("done"), completed(), unsupported()],
    ];
    for frames in orders {
        let mut played = Played::begun();
        for frame in frames {
            played.hear(frame);
        }
        assert_eq!(
            played.failure().1,
            "unsupported app-server request \"item/tool/call\""
        );
        assert_eq!(played.refused(), [-32603]);
    }
}

#[test]
fn s172_every_kind_of_request_has_its_answer_and_its_fact() {
    let offers = |decisions: Value| json!({ "availableDecisions": decisions });
    let amendment = json!({"acceptWithExecpolicyAmendment": {}});
    let decision = |decision: &str| json!({ "decision": decision });
    let cases = [
        (
            asks(COMMAND, json!({})),
            decision("decline"),
            Fact::CommandDeclined,
        ),
        (
            asks(COMMAND, offers(Value::Null)),
            decision("decline"),
            Fact::CommandDeclined,
        ),
        (
            asks(COMMAND, offers(json!(["accept", amendment, "decline", "cancel"]))),
            decision("cancel"),
            Fact::CommandCancelled,
        ),
        (
            asks(COMMAND, offers(json!(["accept", "decline"]))),
            decision("decline"),
            Fact::CommandDeclined,
        ),
        (asks(FILE, json!({})), decision("decline"), Fact::FileDeclined),
        (
            asks(FILE, offers(json!(["cancel"]))),
            decision("cancel"),
            Fact::FileCancelled,
        ),
        (
            asks("item/permissions/requestApproval", json!({})),
            json!({"permissions": {}, "scope": "turn"}),
            Fact::GrantDenied,
        ),
        (
            asks("item/tool/requestUserInput", json!({})),
            json!({"answers": {}}),
            Fact::NoUserInput,
        ),
        (
            asks("mcpServer/elicitation/request", json!({})),
            json!({"action": "decline", "content": null, "_meta": null}),
            Fact::ElicitationDeclined,
        ),
        (
            asks("mcpServer/elicitation/request", json!({"turnId": null})),
            json!({"action": "decline", "content": null, "_meta": null}),
            Fact::ElicitationDeclined,
        ),
    ];
    for (request, result, fact) in cases {
        let answer = json!({"jsonrpc": "2.0", "id": "asked-1", "result": result});
        let mut played = Played::confirmed();
        played.hear(request.clone());
        assert_eq!(played.said[1], answer);
        assert_eq!(played.turn.fact(), Some(fact), "{request}");

        let mut early = Played::begun();
        early.hear(request);
        assert_eq!(
            (&early.said[1], early.turn.fact()),
            (&answer, None),
            "provisional"
        );
        early.hear(response(TURN));
        assert_eq!(early.turn.fact(), Some(fact));
        early.hear(final_answer("done")).hear(completed());
        assert_eq!(early.answer().as_deref(), Some("done"));
    }
}

#[test]
fn s173_a_sandbox_error_is_a_fact_too() {
    let mut played = Played::confirmed();
    played.hear(failed_with(&json!("sandboxError")));
    assert_eq!(played.turn.fact(), Some(Fact::SandboxFailed));
    let mut played = Played::confirmed();
    played.hear(failed_with(&json!("other")));
    assert_eq!(played.turn.fact(), None);
}

#[test]
fn s174_what_codex_declined_by_itself_is_a_fact() {
    for (kind, fact) in [
        ("commandExecution", Fact::CodexDeclinedCommand),
        ("fileChange", Fact::CodexDeclinedFile),
    ] {
        let mut played = Played::confirmed();
        let done = json!({"type": kind, "status": "completed"});
        played.hear(item(done));
        assert_eq!(played.turn.fact(), None);
        played.hear(item(declined(kind)));
        assert_eq!(played.turn.fact(), Some(fact));
    }
}

#[test]
fn s176_what_was_asked_later_is_the_latest() {
    let mut played = Played::confirmed();
    played.turn.note(Fact::EscalationRejected);
    played.hear(asks(FILE, json!({})));
    assert_eq!(played.turn.fact(), Some(Fact::FileDeclined));
}

#[test]
fn s177_a_request_is_later_than_an_early_item_before_it() {
    let mut played = Played::begun();
    played
        .hear(item(declined("commandExecution")))
        .hear(asks(FILE, json!({})))
        .hear(response(TURN));
    assert_eq!(played.turn.fact(), Some(Fact::FileDeclined));
}

#[test]
fn s178_what_was_written_for_people_is_later_than_an_early_end_before_it() {
    let mut played = Played::begun();
    played.hear(failed_with(&json!("sandboxError")));
    played.turn.note(Fact::EscalationRejected);
    played.hear(response(TURN));
    assert_eq!(played.turn.fact(), Some(Fact::EscalationRejected));

    let mut other = Played::begun();
    other.turn.note(Fact::EscalationRejected);
    other
        .hear(failed_with(&json!("sandboxError")))
        .hear(response(TURN));
    assert_eq!(other.turn.fact(), Some(Fact::SandboxFailed));
}

#[test]
fn s179_what_nobody_can_answer_is_refused_and_ends_the_run() {
    let no_choice = "app-server offered no unattended approval decision";
    let cases = [
        (
            asks("SECRET_METHOD", json!({})),
            "unsupported app-server request \"SECRET_METHOD\"",
        ),
        (
            asks(COMMAND, json!({"availableDecisions": ["accept"]})),
            no_choice,
        ),
        (asks(FILE, json!({"availableDecisions": []})), no_choice),
        (
            asks(COMMAND, json!({"availableDecisions": "cancel"})),
            "invalid approval decisions",
        ),
        (
            asks(COMMAND, json!({"threadId": "thread-2"})),
            "unsupported app-server request \"item/commandExecution/requestApproval\"",
        ),
        (
            asks(FILE, json!({"turnId": "turn-2"})),
            "unsupported app-server request \"item/fileChange/requestApproval\"",
        ),
        (
            asks(FILE, json!({"turnId": null})),
            "unsupported app-server request \"item/fileChange/requestApproval\"",
        ),
    ];
    for (request, text) in cases {
        let mut played = Played::confirmed();
        played.hear(request).hear(final_answer("done")).hear(completed());
        assert_eq!(played.failure(), (line("turn", "unknown"), text.to_owned()));
        assert_eq!(played.refused(), [-32603], "{text}");
        assert_eq!(played.turn.fact(), None, "{text}");
    }
}

#[test]
fn s180_an_early_turn_has_to_be_ours() {
    let mut played = Played::begun();
    played.hear(notification(
        "turn/started",
        json!({"threadId": THREAD, "turn": {"id": "turn-2"}}),
    ));
    assert_eq!(played.turn.end(), None);
    played.hear(response(TURN));
    let text = "turn/start response did not match the active turn".to_owned();
    assert_eq!(played.failure(), (line("turn-start", "unknown"), text));
}

#[test]
fn s181_an_item_of_another_turn_leaves_no_fact() {
    let mut played = Played::begun();
    played
        .hear(item_of("turn-2", declined("fileChange")))
        .hear(response(TURN));
    assert_eq!(played.failure().0, line("turn-start", "unknown"));
    assert_eq!((played.turn.fact(), played.turn.output()), (None, None));
}

#[test]
fn s182_a_request_of_another_turn_leaves_no_fact_but_the_log_does() {
    let mut played = Played::begun();
    played.turn.note(Fact::SandboxViolated);
    played
        .hear(asks(COMMAND, json!({"turnId": "turn-2"})))
        .hear(response(TURN));
    assert_eq!(played.failure().0, line("turn-start", "unknown"));
    assert_eq!(played.turn.fact(), Some(Fact::SandboxViolated));
}

#[test]
fn s183_two_early_turns_are_one_too_many() {
    let conflict = "app-server referenced conflicting turns";
    let mut played = Played::begun();
    played
        .hear(item(declined("fileChange")))
        .hear(item_of("turn-2", declined("fileChange")));
    assert_eq!(played.failure().1, conflict);

    let mut asked = Played::begun();
    asked
        .hear(item(declined("fileChange")))
        .hear(asks(FILE, json!({"turnId": "turn-2"})));
    assert_eq!(asked.failure().1, conflict);
    assert_eq!(asked.refused(), [-32603]);
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
    assert_eq!(played.turn.end(), None, "a refused interrupt says nothing");
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
    assert_eq!(played.turn.end(), None);
    for line in ["", "not JSON", "[]", "7", r#"{"id": 3}"#, r#"{"method": 7}"#] {
        assert_eq!(Frame::parse(line), None, "{line}");
    }
    assert_eq!((played.said.len(), played.turn.fact()), (1, None));
}
