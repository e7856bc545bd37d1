//! Runs that go as they should.

use std::collections::BTreeSet;

use dsh_subagent::{Capabilities, ParentContext, StartRequest, StopReason};
use dsh_subagent_acp::{AcpConfig, Permission};
use dsh_testkit::LogCapture;
use tokio_util::sync::CancellationToken;

use crate::agent::Host;

#[tokio::test]
async fn acp_a_task_is_done_by_a_process_of_its_own() {
    let host = Host::new();
    let run = host
        .run(r#"up; hear; echo "$line" > "$ROOM/asked"; say 'two '; say words; stop end_turn; hear; forever"#)
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!((result.stop, result.diagnostic), (StopReason::Completed, None));
    assert_eq!(result.output.len(), 1);
    let asked = std::fs::read_to_string(host.file("asked")).expect("what it was asked");
    assert!(
        asked.contains(r#"[{"type":"text","text":"the task"}]"#),
        "{asked}"
    );
    run.dispose().await.expect("it goes");
    run.dispose().await.expect("it went");
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_every_stop_reason_is_one_of_ours_and_keeps_what_was_said() {
    let reasons = [
        ("end_turn", StopReason::Completed, None),
        ("max_tokens", StopReason::MaxTokens, None),
        ("refusal", StopReason::Refusal, None),
        ("cancelled", StopReason::Aborted, None),
        ("max_turn_requests", StopReason::Error, Some("max-turn-requests")),
        ("SECRET_TOKEN", StopReason::Error, Some("unknown-stop-reason")),
    ];
    let host = Host::new();
    host.install(Host::shell(
        r#"up; hear; reason=${line#*'"text":"'}; say part; stop "${reason%%'"'*}"; hear"#,
    ));
    let count = reasons.len();
    let mut ids = BTreeSet::new();
    for (reason, stop, category) in reasons {
        let run = host.start(reason).await.expect("it starts");
        let result = run.result().await.expect("a result");
        assert_eq!(
            (result.text().as_str(), &result.stop),
            ("part", &stop),
            "{reason}"
        );
        let diagnostic =
            category.map(|category| format!("ACP subagent failure (stage: prompt; category: {category})"));
        assert_eq!(result.diagnostic.map(|text| text.to_string()), diagnostic);
        ids.insert(run.id().to_owned());
        assert!(run.local_agent().is_none());
        run.dispose().await.expect("it goes");
    }
    assert_eq!(ids.len(), count, "every run has an id of its own");
    host.close().await;
}

#[tokio::test]
async fn acp_how_the_process_ends_after_its_answer_is_no_matter() {
    let host = Host::new();
    let run = host.run("up; hear; say done; stop end_turn; exit 17").await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text().as_str(), result.stop),
        ("done", StopReason::Completed)
    );
    run.dispose().await.expect("it is gone");
    host.close().await;
}

#[tokio::test]
async fn acp_permissions_are_answered_at_once_as_configured() {
    let once = r#"{"optionId":"once","name":"x","kind":"allow_once"}"#;
    let never = r#"{"optionId":"never","name":"x","kind":"reject_once"}"#;
    let cases = [
        (Permission::Reject, once, r#""outcome":{"outcome":"cancelled"}"#),
        (
            Permission::Allow,
            once,
            r#""outcome":{"outcome":"selected","optionId":"once"}"#,
        ),
        (Permission::Allow, never, r#""outcome":{"outcome":"cancelled"}"#),
    ];
    for (permission, option, outcome) in cases {
        let host = Host::new();
        let script = format!(
            r#"up; hear; asked=$id; ask '{option}'; hear; echo "$line" > "$ROOM/allowed"; id=$asked; stop end_turn; hear"#
        );
        host.install(AcpConfig {
            permission,
            ..Host::shell(&script)
        });
        let run = host.start("the task").await.expect("it starts");
        let result = run.result().await.expect("a result");
        assert_eq!(result.stop, StopReason::Completed);
        let allowed = std::fs::read_to_string(host.file("allowed")).expect("an answer");
        assert!(allowed.contains(outcome), "{permission:?}: {allowed}");
        host.close().await;
    }
}

#[tokio::test]
async fn acp_noise_is_passed_over_and_what_is_not_offered_is_refused() {
    let host = Host::new();
    let run = host
        .run(
            r#"
            echo 'Welcome to the agent!'; echo; echo '[1]'; echo '{"jsonrpc":"2.0","id":"?","result":1}'
            up; hear; asked=$id
            update '{"sessionUpdate":"a_new_kind","content":7}'
            echo '{"jsonrpc":"2.0","method":"_of_another/world","params":{}}'
            update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}'
            say 'not '
            echo '{"jsonrpc":"2.0","id":"f","method":"fs/read_text_file","params":{"sessionId":"s","path":"/etc/passwd"}}'
            hear; echo "$line" > "$ROOM/refused"
            id=$asked; say lost; stop end_turn; hear"#,
        )
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.text().as_str(), result.stop),
        ("not lost", StopReason::Completed)
    );
    let refused = std::fs::read_to_string(host.file("refused")).expect("an answer");
    assert!(refused.contains("-32601"), "{refused}");
    host.close().await;
}

#[tokio::test]
async fn acp_it_works_where_its_parent_does_unless_it_is_configured_and_with_the_configured_environment() {
    let script = r#"up; hear; say "$PWD $COLOUR $PATH"; stop end_turn; hear"#;
    let host = Host::new();
    let elsewhere = host.file("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let env = [
        ("COLOUR".to_owned(), "red".into()),
        ("PATH".to_owned(), "/bin".into()),
    ];
    host.install(AcpConfig {
        env: env.into(),
        ..Host::shell(script)
    });
    let there = host.install(AcpConfig {
        provider_name: "there".to_owned(),
        cwd: Some(elsewhere.clone()),
        ..Host::shell(script)
    });
    let run = host.start("where?").await.expect("it starts");
    let result = run.result().await.expect("a result");
    assert_eq!(result.text(), format!("{} red /bin", path(host.room.path())));
    // Somebody without a directory can delegate to the one that has one.
    let homeless = host.homeless();
    let task = |token| StartRequest::new("where?", homeless.agent().clone(), token);
    let run = host.subagents.start("there", task(CancellationToken::new()));
    let result = run.await.expect("it starts").result().await.expect("a result");
    assert_eq!(result.text(), format!("{}  /usr/bin:/bin", path(&elsewhere)));
    let refused = host.subagents.start("acp", task(CancellationToken::new()));
    assert_eq!(
        refused.await.expect_err("nowhere").to_string(),
        "subagent-acp: no working directory for the child — configure cwd, or delegate from a parent session that has one"
    );
    there.dispose().await;
    host.close().await;
}

#[tokio::test]
async fn acp_it_can_only_do_tasks_and_an_unloaded_provider_leaves_its_runs() {
    let host = Host::new();
    let installed = host.install(Host::shell(
        r#"up; hear; until [ -e "$ROOM/go" ]; do sleep 0.02; done; say late; stop end_turn; hear"#,
    ));
    let info = host.subagents.info("acp").expect("it is there");
    assert_eq!(
        (info.capabilities, info.context),
        (Capabilities::NONE, ParentContext::Fresh)
    );
    let run = host.start("the task").await.expect("it starts");
    installed.dispose().await;
    let refused = host.start("another").await.expect_err("nobody is there");
    assert_eq!(refused.code(), Some("NO_PROVIDER"));
    host.make("go");
    assert_eq!(run.result().await.expect("a result").text(), "late");
    run.dispose().await.expect("it goes");
    host.install(Host::shell("up; hear; stop end_turn; hear"));
    let run = host.start("again").await.expect("it is there again");
    assert!(run.result().await.expect("a result").output.is_empty());
    host.close().await;
}

#[tokio::test]
async fn acp_a_task_of_a_megabyte_arrives_whole() {
    let host = Host::new();
    let logged = LogCapture::start();
    host.install(Host::shell(
        r#"up; hear; text=${line#*'"text":"'}; text=${text%%'"'*}; say ${#text}; stop end_turn; hear"#,
    ));
    let run = host.start(&"x".repeat(1 << 20)).await.expect("it starts");
    assert_eq!(run.result().await.expect("a result").text(), "1048576");
    assert!(!logged.contains("xxxx"), "a task is in no log");
    host.close().await;
}

#[tokio::test]
async fn acp_a_task_has_words() {
    let host = Host::new();
    host.install(Host::shell("up"));
    let empty = host.start(" \n").await.expect_err("nothing to do");
    assert_eq!(
        empty.to_string(),
        "subagent-acp: the one-shot task must not be empty"
    );
    let mut request = StartRequest::new("", host.parent().clone(), CancellationToken::new());
    request.prompt.clear();
    let none = host
        .subagents
        .start("acp", request)
        .await
        .expect_err("nothing at all");
    assert_eq!(
        none.to_string(),
        "subagent-acp: the one-shot task must contain only text blocks"
    );
    assert!(!host.has("pid"), "nothing was started");
    host.close().await;
}
