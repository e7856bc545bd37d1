//! Runs that are cancelled, and the end of every process.

use std::time::Duration;

use dsh_subagent::StopReason;
use dsh_subagent_acp::AcpConfig;
use dsh_testkit::eventually;
use dsh_testkit::process::is_gone;
use tokio_util::sync::CancellationToken;

use crate::agent::Host;

const ABORTED: &str = "subagent request was aborted before the ACP child started";

#[tokio::test]
async fn acp_a_request_that_was_cancelled_starts_nothing() {
    let host = Host::new();
    host.install(Host::shell("up"));
    let token = CancellationToken::new();
    token.cancel();
    // Not even what else is wrong with it is looked at.
    let error = host.start_with("", &token).await.expect_err("cancelled");
    assert_eq!(error.to_string(), ABORTED);
    assert!(!host.has("pid"));
    host.close().await;
}

#[tokio::test]
async fn acp_a_cancellation_during_session_new_leaves_nothing() {
    let host = Host::new();
    host.install(Host::shell(
        r#"hear; answer '{"protocolVersion":1}'; hear; echo > "$ROOM/asked"; hear; forever"#,
    ));
    let token = CancellationToken::new();
    let start = host.start_with("the task", &token);
    let cancelling = async {
        host.made("asked").await;
        token.cancel();
    };
    let (started, ()) = tokio::join!(start, cancelling);
    assert_eq!(started.expect_err("cancelled").to_string(), ABORTED);
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_a_run_that_is_cancelled_is_aborted_at_once_and_the_agent_hears_it() {
    let host = Host::new();
    // It hears it, and goes on all the same.
    host.install(AcpConfig {
        dispose_eof_grace_ms: 50.0,
        ..Host::shell(
            r#"up; hear; say partial; echo > "$ROOM/at-work"; hear; echo "$line" > "$ROOM/heard"; say more; forever"#,
        )
    });
    let token = CancellationToken::new();
    let run = host.start_with("the task", &token).await.expect("it starts");
    host.made("at-work").await;
    token.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!((result.stop, result.diagnostic), (StopReason::Aborted, None));
    assert!(!is_gone(host.pid()), "the process ends later");
    eventually("it hears it", || {
        std::fs::read_to_string(host.file("heard")).is_ok_and(|line| line.ends_with('\n'))
    })
    .await;
    let heard = std::fs::read_to_string(host.file("heard")).expect("what it heard");
    assert!(
        heard.contains(r#""method":"session/cancel""#) && heard.contains(r#""sessionId":"s""#),
        "{heard}"
    );
    run.dispose().await.expect("it goes");
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_a_crash_after_the_cancellation_is_no_failure() {
    let host = Host::new();
    let run = host
        .run(r#"up; hear; say partial; echo > "$ROOM/at-work"; hear; exit 9"#)
        .await;
    host.made("at-work").await;
    run.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!((result.stop, result.diagnostic), (StopReason::Aborted, None));
    run.dispose().await.expect("it is gone");
    host.close().await;
}

#[tokio::test]
async fn acp_a_disposal_of_a_run_at_work_is_a_cancellation_that_the_agent_hears_first() {
    let host = Host::new();
    let run = host
        .run(
            r#"up; hear; echo > "$ROOM/at-work"; hear; echo "$line" > "$ROOM/heard"; stop cancelled
               read -r line || echo > "$ROOM/eof""#,
        )
        .await;
    host.made("at-work").await;
    run.dispose().await.expect("it goes");
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    let heard = std::fs::read_to_string(host.file("heard")).expect("what it heard");
    assert!(heard.contains("session/cancel"), "{heard}");
    assert!(host.has("eof"), "then its input ended");
    host.close().await;
}

#[tokio::test]
async fn acp_an_agent_that_ends_with_its_input_is_sent_no_signal_however_short_the_grace_is() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_eof_grace_ms: 60_000.0,
        dispose_grace_ms: 1.0,
        ..Host::shell(
            r#"trap 'echo > "$ROOM/term"; exit 1' TERM
               up; hear; stop end_turn; read -r line || echo > "$ROOM/eof"
               until [ -e "$ROOM/go" ]; do sleep 0.02; done; echo > "$ROOM/done""#,
        )
    });
    let run = host.start("the task").await.expect("it starts");
    run.result().await.expect("a result");
    let going = async {
        host.made("eof").await;
        host.make("go");
    };
    let (disposed, ()) = tokio::join!(run.dispose(), going);
    disposed.expect("it went");
    assert!(host.has("done"), "it came to its end");
    assert!(!host.has("term"), "nobody told it to");
    host.close().await;
}

#[tokio::test]
async fn acp_an_agent_that_is_deaf_to_the_end_of_its_input_is_told_to_end() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_eof_grace_ms: 50.0,
        dispose_grace_ms: 60_000.0,
        ..Host::shell(
            r#"trap 'echo > "$ROOM/term"; exit 0' TERM; up; hear; stop end_turn; while :; do sleep 0.05; done"#,
        )
    });
    let run = host.start("the task").await.expect("it starts");
    run.result().await.expect("a result");
    run.dispose().await.expect("it went");
    assert!(host.has("term"), "it ended as it was told to");
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_an_agent_that_is_deaf_to_everything_is_killed_with_what_it_started() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_eof_grace_ms: 50.0,
        dispose_grace_ms: 50.0,
        ..Host::shell("trap '' TERM; sleep 600 & up; hear; stop end_turn; forever")
    });
    let run = host.start("the task").await.expect("it starts");
    run.result().await.expect("a result");
    run.dispose().await.expect("it is gone");
    assert!(is_gone(host.pid()));
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_a_hurry_takes_both_graces_from_an_agent_that_is_deaf_to_everything() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_eof_grace_ms: 600_000.0,
        dispose_grace_ms: 600_000.0,
        ..Host::shell("trap '' TERM; sleep 600 & up; hear; stop end_turn; forever")
    });
    let run = host.start("the task").await.expect("it starts");
    run.result().await.expect("a result");
    let disposing = async {
        let hurrying = async { host.hurry.cancel() };
        tokio::join!(biased; run.dispose(), hurrying).0
    };
    let disposed = tokio::time::timeout(Duration::from_secs(30), disposing).await;
    disposed
        .expect("nobody waits for the graces")
        .expect("it is gone");
    assert!(is_gone(host.pid()));
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_an_agent_that_never_reads_its_task_can_be_cancelled() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_eof_grace_ms: 50.0,
        ..Host::shell(r#"up; echo > "$ROOM/up"; forever"#)
    });
    let run = host.start(&"x".repeat(1 << 20)).await.expect("it starts");
    host.made("up").await;
    run.cancel();
    let result = tokio::time::timeout(Duration::from_secs(20), run.result()).await;
    let result = result.expect("at once").expect("a result");
    assert_eq!(result.stop, StopReason::Aborted);
    run.dispose().await.expect("it goes");
    host.close().await;
}

#[tokio::test]
async fn acp_a_parent_that_goes_takes_its_children_along() {
    let host = Host::new();
    let run = host.run(r#"up; hear; echo > "$ROOM/at-work"; hear; hear"#).await;
    host.made("at-work").await;
    let pid = host.pid();
    host.scope.close().await.expect("it closes");
    assert!(is_gone(pid), "before the scope is closed");
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    host.close().await;
}
