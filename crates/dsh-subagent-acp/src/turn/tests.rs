use super::*;

use agent_client_protocol::v1::schema::RequestPermissionResponse;
use serde_json::{Value, json};

fn opened(permission: Permission) -> Turn {
    let turn = Turn::new(permission);
    turn.open(SessionId::new("s"));
    turn
}

fn told(session: &str, kind: &str, text: &str) -> SessionNotification {
    let update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
    serde_json::from_value(json!({"sessionId": session, "update": update})).expect("an update")
}

fn decided(turn: &Turn, session: &str, kinds: &[&str]) -> Value {
    let options = kinds.iter().enumerate();
    let options: Vec<Value> = options
        .map(|(at, kind)| json!({"optionId": format!("{at}-{kind}"), "name": "x", "kind": kind}))
        .collect();
    let request = json!({"sessionId": session, "toolCall": {"toolCallId": "c"}, "options": options});
    let request = serde_json::from_value(request).expect("a request");
    let response = RequestPermissionResponse::new(turn.decide(&request));
    serde_json::to_value(response).expect("a response")["outcome"].clone()
}

#[test]
fn acp_the_answer_is_the_text_of_the_turn_and_nothing_else() {
    let turn = Turn::new(Permission::Reject);
    turn.hear(told("s", "agent_message_chunk", "before, "));
    turn.open(SessionId::new("s"));
    turn.hear(told("s", "agent_message_chunk", "one "));
    turn.hear(told("s", "agent_thought_chunk", "hm "));
    turn.hear(told("s", "user_message_chunk", "task "));
    turn.hear(told("other", "agent_message_chunk", "stranger "));
    turn.hear(told("s", "agent_message_chunk", "two"));
    assert_eq!(turn.close(), Some(SessionId::new("s")));
    turn.hear(told("s", "agent_message_chunk", ", after"));
    assert_eq!(
        turn.said(),
        Said {
            text: "one two".to_owned(),
            cut: false
        }
    );
    assert_eq!(turn.close(), None, "a turn ends once");
}

#[test]
fn acp_what_was_said_before_a_call_belongs_to_the_answer() {
    let turn = opened(Permission::Reject);
    turn.hear(told("s", "agent_message_chunk", "I look."));
    for update in [
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "a call"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
        json!({"sessionUpdate": "plan", "entries": []}),
    ] {
        let update = json!({"sessionId": "s", "update": update});
        turn.hear(serde_json::from_value(update).expect("an update"));
    }
    turn.hear(told("s", "agent_message_chunk", "Found."));
    assert_eq!(turn.said().text, "I look.Found.");
}

#[test]
fn acp_what_is_kept_of_an_answer_is_bounded() {
    let turn = opened(Permission::Reject);
    turn.hear(told("s", "agent_message_chunk", &"x".repeat(MAX_ANSWER_BYTES)));
    assert!(!turn.said().cut);
    turn.hear(told("s", "agent_message_chunk", "y"));
    assert!(turn.said().cut);
    assert_eq!(turn.said().text.len(), MAX_ANSWER_BYTES);
}

#[test]
fn acp_nothing_is_allowed_by_default() {
    let turn = opened(Permission::Reject);
    assert_eq!(
        decided(&turn, "s", &["allow_once", "reject_once"]),
        json!({"outcome": "cancelled"})
    );
}

#[test]
fn acp_what_may_be_allowed_takes_the_first_option_that_allows() {
    let turn = opened(Permission::Allow);
    let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
    assert_eq!(
        decided(&turn, "s", &["reject_once", "allow_always", "allow_once"]),
        selected("1-allow_always")
    );
    assert_eq!(decided(&turn, "s", &["allow_once"]), selected("0-allow_once"));
    let cancelled = json!({"outcome": "cancelled"});
    assert_eq!(decided(&turn, "s", &["reject_once", "reject_always"]), cancelled);
    assert_eq!(decided(&turn, "other", &["allow_once"]), cancelled);
    turn.close();
    assert_eq!(
        decided(&turn, "s", &["allow_once"]),
        cancelled,
        "the turn is over"
    );
}
