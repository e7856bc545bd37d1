//! Runs whose turn comes to an end.

use dsh_subagent::StopReason;
use dsh_subagent_codex::{CodexConfig, PermissionMode};
use serde_json::json;

use crate::played::{Room, diagnostic, line};

#[tokio::test]
async fn s187_a_process_a_thread_a_published_run_a_turn_an_answer() {
    let script = "echo \"$0 $*|$AMBIENT|$OWN|${GONE-none}|$PWD\" > started\n\
                  greet; hear; say '{\"id\":3,\"result\":{\"turn\":{\"id\":\"turn-1\"}}}'\n\
                  message commented; message 'the answer'; completed; listen; echo > closed";
    let room = Room::bare(script);
    let mut deps = room.deps();
    deps.ambient.push(("GONE".into(), "x".into()));
    let config = json!({
        "program": "/bin/sh", "env": {"OWN": "own", "AMBIENT": "overlaid", "GONE": false}
    });
    let config = serde_json::from_value(config).expect("a configuration");
    dsh_subagent_codex::install(&room.scope, deps, config).expect("it can be installed");

    let run = room.start().await;
    let uuid = run.id().parse::<uuid::Uuid>().expect("an id of our own");
    assert_eq!(uuid.get_version_num(), 4);
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text(), result.stop, result.diagnostic),
        ("the answer".to_owned(), StopReason::Completed, None)
    );
    room.made("closed").await;
    run.dispose().await.expect("nothing is left");
    run.dispose().await.expect("nothing is left, still");
    room.assert_empty();
    assert_eq!(
        room.text("started").trim_end(),
        format!("app-server --stdio|overlaid|own|none|{}", room.path().display())
    );
    assert_eq!(
        room.methods(),
        ["initialize", "initialized", "thread/start", "turn/start"]
    );
    assert_eq!(
        room.heard()[2]["params"]["cwd"],
        room.path().to_str().expect("UTF-8")
    );
}

#[tokio::test]
async fn s187_a_run_is_published_with_its_thread_and_before_its_turn() {
    let room = Room::new(
        "greet; until [ -e go ]; do sleep 0.01; done; hear; say '{\"id\":3,\"result\":{\"turn\":{\"id\":\"turn-1\"}}}'\n\
                          message done; completed; listen",
    );
    let run = room.start().await;
    assert_eq!(room.methods(), ["initialize", "initialized", "thread/start"]);
    room.make("go");
    assert_eq!(run.result().await.expect("a result").text(), "done");
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s189_a_turn_that_cannot_begin_is_a_failure_of_its_own_stage() {
    let room = Room::new(
        "greet; hear; say '{\"id\":3,\"error\":{\"code\":-1,\"message\":\"SECRET_TOKEN\"}}'; listen",
    );
    let result = room.run().await;
    assert_eq!(result.stop, StopReason::Error);
    assert_eq!(diagnostic(&result), line("stage: turn-start; category: unknown"));
    assert_eq!(result.output, []);
}

#[tokio::test]
async fn s189_a_success_says_nothing_of_what_was_not_permitted() {
    let asks = r#"{"id":"a","method":"item/fileChange/requestApproval","params":{"threadId":"thread-1","turnId":"turn-1"}}"#;
    let room = Room::new(&format!(
        "begin; say '{asks}'; hear; message done; completed; listen"
    ));
    let result = room.run().await;
    assert_eq!((result.text().as_str(), result.diagnostic), ("done", None));
    let answer = json!({"jsonrpc": "2.0", "id": "a", "result": {"decision": "decline"}});
    assert_eq!(room.heard()[4], answer);
}

#[tokio::test]
async fn s190_a_failed_turn_has_its_category_and_keeps_what_was_said() {
    let cases = [
        ("\"serverOverloaded\"", "serverOverloaded", StopReason::Error),
        (
            "\"contextWindowExceeded\"",
            "contextWindowExceeded",
            StopReason::MaxTokens,
        ),
        (
            "{\"httpConnectionFailed\":{\"httpStatusCode\":503}}",
            "httpConnectionFailed; HTTP status: 503",
            StopReason::Error,
        ),
        ("\"SECRET_TOKEN\"", "unknown", StopReason::Error),
    ];
    for (info, category, stop) in cases {
        let room = Room::new(&format!("begin; message 'so far'; failed '{info}'; listen"));
        let result = room.run().await;
        assert_eq!((&result.stop, result.text().as_str()), (&stop, "so far"));
        assert_eq!(
            diagnostic(&result),
            line(&format!("stage: turn; category: {category}"))
        );
    }
}

#[tokio::test]
async fn s193_a_failure_has_the_latest_permission_on_its_second_line() {
    let asks = r#"{"id":7,"method":"item/commandExecution/requestApproval","params":{"threadId":"thread-1","turnId":"turn-1","command":"cat /private/secret.txt","availableDecisions":["accept","cancel"]}}"#;
    let room = Room::bare(&format!("begin; say '{asks}'; hear; failed '\"other\"'; listen"));
    room.install(CodexConfig {
        permission_mode: PermissionMode::ApproveForMe,
        ..CodexConfig::default()
    });
    let result = room.run().await;
    assert_eq!(
        diagnostic(&result),
        line("stage: turn; category: other")
            + "\nCodex unattended decision (mode: approve-for-me; request: command approval; decision: cancelled): \
               the provider does not grant interactive approval"
    );
}

#[tokio::test]
async fn s179_a_request_that_nobody_can_answer_is_refused_and_fails_the_run() {
    let asks = r#"{"id":7,"method":"item/tool/call","params":{"threadId":"thread-1","turnId":"turn-1","tool":"SECRET_TOKEN"}}"#;
    // All at once: the turn is over as well.
    let room = Room::new(&format!(
        "begin; all=$(message done; completed; say '{asks}'); say \"$all\"; listen; echo > closed"
    ));
    let run = room.start().await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        (&result.stop, result.text().as_str()),
        (&StopReason::Error, "done")
    );
    assert_eq!(diagnostic(&result), line("stage: turn; category: unknown"));
    room.made("closed").await;
    run.dispose().await.expect("nothing is left");
    let refusal = &room.heard()[4];
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(7), &json!(-32603))
    );
}

#[tokio::test]
async fn an_app_server_that_never_stops_to_talk_gets_its_answer_and_its_log_is_read() {
    let asks = r#"{"id":7,"method":"item/tool/requestUserInput","params":{"threadId":"thread-1","turnId":"turn-1"}}"#;
    // Its log is more than a pipe holds.
    let room = Room::new(&format!(
        "begin; (until [ -e answered ]; do say '{{}}'; done) & say '{asks}'; hear\n\
         head -c 300000 /dev/zero | tr '\\0' x >&2; echo > answered; wait; message done; completed; listen"
    ));
    assert_eq!(room.run().await.text(), "done");
}
