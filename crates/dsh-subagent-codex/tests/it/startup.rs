//! What fails between the process and the publication.

use std::error::Error;

use dsh_subagent_codex::CodexConfig;
use dsh_testkit::{LogCapture, eventually};
use tokio_util::sync::CancellationToken;

use crate::played::{Room, line, refusal};

const ABORTED: &str = "subagent-codex: request was aborted before run publication";

fn unstarted(fields: &str) -> String {
    format!("subagent-codex: {}", line(fields))
}

#[tokio::test]
async fn s197_a_program_that_is_not_there_is_told_by_the_source_alone() {
    let room = Room::bare("");
    room.install(CodexConfig {
        program: Some("/private/secret.txt".into()),
        ..CodexConfig::default()
    });
    let failed = room.try_start().await;
    let error = failed.as_ref().expect_err("no program");
    let cause = error.source().expect("what is behind it").to_string();
    assert!(cause.contains("cannot run /private/secret.txt"), "{cause}");
    assert_eq!(refusal(failed), unstarted("stage: initialize; category: unknown"));
}

#[tokio::test]
async fn s197_each_way_to_fail_before_the_thread_has_its_line_and_leaves_nothing() {
    let error = r#"{"id":1,"error":{"code":1,"message":"SECRET_TOKEN"}}"#;
    let kept = r#"{"id":2,"result":{"thread":{"id":"thread-1","ephemeral":false}}}"#;
    let cases = [
        (
            "hear; say '{\"id\":1,\"result\":7}'; listen".to_owned(),
            "initialize",
            "",
        ),
        (format!("hear; say '{error}'; listen"), "initialize", ""),
        (
            format!("hear; say '{{\"id\":1,\"result\":{{}}}}'; hear; hear; say '{kept}'; sleep 600 & listen"),
            "thread-start",
            "",
        ),
        (
            "hear; say '{\"id\":1,\"result\":{}}'; hear; hear; kill -KILL $$".to_owned(),
            "thread-start",
            "; signal: SIGKILL",
        ),
        (
            "hear; exec 1>&-; echo SECRET_TOKEN >&2; exit 17".to_owned(),
            "initialize",
            "; exit code: 17",
        ),
    ];
    for (script, stage, exit) in cases {
        let room = Room::new(&script);
        let expected = unstarted(&format!("stage: {stage}; category: unknown{exit}"));
        assert_eq!(refusal(room.try_start().await), expected, "{script}");
        room.assert_empty();
    }
}

#[tokio::test]
async fn s197_an_app_server_that_stops_to_talk_and_lives_has_the_grace() {
    let room = Room::bare("hear; exec 1>&-; sleep 600");
    room.install(CodexConfig {
        dispose_grace_ms: 30.0,
        ..CodexConfig::default()
    });
    let failed = refusal(room.try_start().await);
    assert_eq!(failed, unstarted("stage: initialize; category: unknown"));
    room.assert_empty();
}

#[tokio::test]
async fn s197_a_cancelled_start_is_an_aborted_one_whatever_else_fails() {
    // It ends with the request to end, and with a code.
    let script =
        "trap 'exit 3' TERM; hear; say '{\"id\":1,\"result\":{}}'; hear; hear; echo > held; sleep 600 & wait";
    let room = Room::new(script);
    let token = CancellationToken::new();
    let request = room.request(&token);
    let start = room.subagents.start("codex", request);
    let cancel = async {
        room.made("held").await;
        token.cancel();
    };
    let (started, ()) = tokio::join!(start, cancel);
    assert_eq!(refusal(started), ABORTED);
    room.assert_empty();
}

#[tokio::test]
async fn s197_a_start_that_is_cancelled_during_the_rollback_is_aborted() {
    let script = "trap 'echo > asked; until [ -e go ]; do sleep 0.01; done; exit 3' TERM\n\
                  hear; say '{\"id\":1,\"result\":7}'; while :; do sleep 0.01; done";
    let room = Room::new(script);
    let token = CancellationToken::new();
    let start = room.subagents.start("codex", room.request(&token));
    let cancel = async {
        room.made("asked").await;
        token.cancel();
        room.make("go");
    };
    let (started, ()) = tokio::join!(start, cancel);
    assert_eq!(refusal(started), ABORTED);
    room.assert_empty();
}

#[tokio::test]
async fn s197_what_it_writes_for_people_does_not_hinder_the_start() {
    let logged = LogCapture::start();
    let room = Room::new("echo SECRET_TOKEN-of-s197 >&2; exec 2>&-; begin; message done; completed; listen");
    assert_eq!(room.run().await.text(), "done");
    assert!(logged.contains("SECRET_TOKEN-of-s197"), "the debug log has it");
}

#[tokio::test]
async fn s198_a_start_that_is_cancelled_with_its_thread_is_aborted() {
    let script = "hear; say '{\"id\":1,\"result\":{}}'; hear; hear; echo > held; until [ -e go ]; do sleep 0.01; done\n\
                  say '{\"id\":2,\"result\":{\"thread\":{\"id\":\"thread-1\",\"ephemeral\":true}}}'; echo > greeted; listen";
    let room = Room::new(script);
    let token = CancellationToken::new();
    let start = room.subagents.start("codex", room.request(&token));
    let cancel = async {
        room.made("held").await;
        room.make("go");
        // Both are there when the start goes on.
        room.hold_until_made("greeted");
        token.cancel();
    };
    let (started, ()) = tokio::join!(start, cancel);
    assert_eq!(refusal(started), ABORTED);
    room.assert_empty();
}

#[tokio::test]
async fn s198_a_start_that_nobody_waits_for_any_more_leaves_nothing() {
    let room = Room::new("hear; echo > held; sleep 600 & listen");
    let token = CancellationToken::new();
    let start = room.subagents.start("codex", room.request(&token));
    tokio::select! {
        biased;
        started = start => panic!("not yet: {started:?}"),
        () = room.made("held") => {}
    }
    eventually("the app server to go", || room.is_empty()).await;
}
