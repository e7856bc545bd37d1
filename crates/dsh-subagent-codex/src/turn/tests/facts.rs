//! Which fact is the latest, and whose turn it is of.

use super::*;

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
fn s180_an_early_turn_has_to_be_ours() {
    let mut played = Played::begun();
    played.hear(notification(
        "turn/started",
        json!({"threadId": THREAD, "turn": {"id": "turn-2"}}),
    ));
    assert!(played.turn.end().is_none());
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
