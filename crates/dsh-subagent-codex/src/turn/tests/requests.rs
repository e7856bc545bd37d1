//! What Codex asks, and what that does to the turn.

use super::*;

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
