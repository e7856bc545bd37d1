//! Handshakes that are played.

use serde_json::json;

use super::*;

/// Hears a frame, and returns what is sent then and what that comes to.
fn hear(handshake: &mut Handshake, frame: &Value) -> (Vec<Value>, Result<Option<String>, String>) {
    let frame = Frame::parse(&frame.to_string()).expect("a frame");
    let mut send = Vec::new();
    let thread = handshake.hear(frame, &mut send);
    (send, thread.map_err(|fault| fault.0))
}

fn begun(mode: PermissionMode) -> (Handshake, Value) {
    Handshake::begin("/the/workspace".to_owned(), mode)
}

fn initialized_with(mode: PermissionMode) -> (Handshake, Vec<Value>) {
    let (mut handshake, _) = begun(mode);
    let (send, thread) = hear(&mut handshake, &json!({"id": 1, "result": {}}));
    assert_eq!(thread, Ok(None));
    (handshake, send)
}

fn thread_start(mode: PermissionMode) -> Value {
    let (_, send) = initialized_with(mode);
    send[1].clone()
}

fn expected(mut mode: Value) -> Value {
    mode["cwd"] = json!("/the/workspace");
    mode["ephemeral"] = json!(true);
    json!({"jsonrpc": "2.0", "id": 2, "method": "thread/start", "params": mode})
}

#[test]
fn s158_never_asks_for_no_approval_and_leaves_the_sandbox_to_codex() {
    let params = json!({"approvalPolicy": "never"});
    assert_eq!(thread_start(PermissionMode::Never), expected(params));
}

#[test]
fn s159_approve_for_me_has_a_reviewer_and_a_writable_workspace() {
    let params = json!({
        "approvalPolicy": "on-request", "approvalsReviewer": "auto_review", "sandbox": "workspace-write"
    });
    assert_eq!(thread_start(PermissionMode::ApproveForMe), expected(params));
}

#[test]
fn s160_a_bypass_has_no_sandbox() {
    let params = json!({"approvalPolicy": "never", "sandbox": "danger-full-access"});
    let mode = PermissionMode::DangerouslyBypassApprovalsAndSandbox;
    assert_eq!(thread_start(mode), expected(params));
}

#[test]
fn s163_initialize_then_initialized_then_a_thread() {
    let (mut handshake, first) = begun(PermissionMode::Never);
    assert_eq!(
        first,
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "clientInfo": {"name": "deepseek-harness", "title": "DeepSeek Harness", "version": "0.0.1"},
            "capabilities": {"experimentalApi": false, "requestAttestation": false}
        }})
    );
    let early = json!({"id": 2, "result": {"thread": {"id": "thread-0", "ephemeral": true}}});
    assert_eq!(
        hear(&mut handshake, &early),
        (vec![], Ok(None)),
        "not asked for yet"
    );
    let (send, thread) = hear(&mut handshake, &json!({"id": 1, "result": {}}));
    assert_eq!(thread, Ok(None), "a user agent is not needed");
    assert_eq!(send[0], json!({"jsonrpc": "2.0", "method": "initialized"}));
    assert_eq!((send.len(), &send[1]["method"]), (2, &json!("thread/start")));
    let told = json!({"method": "thread/started", "params": {"thread": {"id": "thread-0"}}});
    assert_eq!(hear(&mut handshake, &told), (vec![], Ok(None)));
    let answer = json!({"id": 2, "result": {"thread": {"id": "thread-1", "ephemeral": true}}});
    assert_eq!(
        hear(&mut handshake, &answer),
        (vec![], Ok(Some("thread-1".to_owned())))
    );
}

#[test]
fn s168_no_thread_without_a_proper_answer() {
    for result in [json!(null), json!([]), json!("SECRET_TOKEN")] {
        let (mut handshake, _) = begun(PermissionMode::Never);
        let (send, thread) = hear(&mut handshake, &json!({"id": 1, "result": result}));
        assert_eq!(thread, Err("invalid initialize response".to_owned()));
        assert_eq!((send.len(), handshake.stage()), (0, Stage::Initialize));
    }
    for thread in [
        json!(null),
        json!({"id": "", "ephemeral": true}),
        json!({"id": "thread-1"}),
        json!({"id": "thread-1", "ephemeral": false}),
        json!({"id": "thread-1", "ephemeral": "true"}),
        json!({"id": 1, "ephemeral": true}),
    ] {
        let (mut handshake, _) = initialized_with(PermissionMode::Never);
        let answer = json!({"id": 2, "result": {"thread": thread}});
        let none = "subagent-codex: app-server did not create an ephemeral thread";
        assert_eq!(hear(&mut handshake, &answer).1, Err(none.to_owned()), "{thread}");
        assert_eq!(handshake.stage(), Stage::ThreadStart);
    }
}

#[test]
fn s183_a_request_before_the_turn_is_refused() {
    let cases = [
        (
            json!({"turnId": "turn-1"}),
            "app-server referenced a turn before turn/start",
        ),
        (
            json!({"turnId": null}),
            "unsupported app-server request \"mcpServer/elicitation/request\"",
        ),
    ];
    for (params, text) in cases {
        let (mut handshake, _) = initialized_with(PermissionMode::Never);
        let request = json!({"id": 7, "method": "mcpServer/elicitation/request", "params": params});
        let (send, thread) = hear(&mut handshake, &request);
        assert_eq!(thread, Err(text.to_owned()));
        assert_eq!(
            (&send[0]["id"], &send[0]["error"]["code"]),
            (&json!(7), &json!(-32603))
        );
    }
}
