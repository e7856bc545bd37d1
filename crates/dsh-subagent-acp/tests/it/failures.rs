//! Agents that fail, and what is said of it.

use std::time::Duration;

use dsh_subagent::{RunResult, StopReason};
use dsh_subagent_acp::AcpConfig;
use dsh_subagent_process::MAX_LINE_BYTES;
use dsh_testkit::LogCapture;

use crate::agent::Host;

const SECRETS: [&str; 2] = ["SECRET_TOKEN", "/private/secret.txt"];

fn failure(result: &RunResult) -> String {
    assert_eq!(result.stop, StopReason::Error);
    let diagnostic = result.diagnostic.as_ref().expect("a diagnostic");
    diagnostic.to_string()
}

#[tokio::test]
async fn acp_a_crash_in_the_middle_is_an_error_with_what_was_said() {
    let host = Host::new();
    let logged = LogCapture::start();
    let run = host
        .run("up; hear; say partial; echo SECRET_TOKEN >&2; exit 3")
        .await;
    let result = run.result().await.expect("a result");
    let line = "ACP subagent failure (stage: prompt; category: process-exit; exit code: 3)";
    assert_eq!(
        (failure(&result).as_str(), result.text().as_str()),
        (line, "partial")
    );
    assert!(logged.contains(&format!("subagent-acp \"acp\": child run failed (error): {line}")));
    run.dispose().await.expect("it is gone");
    host.close().await;
}

#[tokio::test]
async fn acp_a_line_that_nobody_can_hold_is_called_that_however_the_agent_ends() {
    let bytes = MAX_LINE_BYTES + 1;
    for end in ["exit 1", "forever"] {
        let host = Host::new();
        let run = host
            .run(&format!(
                "up; hear; say partial; head -c {bytes} /dev/zero | tr '\\0' x; {end}"
            ))
            .await;
        let result = run.result().await.expect("a result");
        assert_eq!(
            (failure(&result).as_str(), result.text().as_str()),
            (
                "ACP subagent failure (stage: prompt; category: line-too-long)",
                "partial"
            )
        );
        run.dispose().await.expect("it is gone");
        host.close().await;
    }
}

#[tokio::test]
async fn acp_what_an_agent_says_of_its_failure_is_in_the_debug_log_alone() {
    let host = Host::new();
    let logged = LogCapture::start();
    let error = r#"{"code":-32603,"message":"no SECRET_TOKEN in /private/secret.txt","data":"SECRET_TOKEN"}"#;
    let run = host.run(&format!("up; hear; fail '{error}'; hear")).await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        failure(&result),
        "ACP subagent failure (stage: prompt; category: error-response; error code: -32603)"
    );
    for secret in SECRETS {
        assert!(!format!("{result:?}").contains(secret));
        let lines = logged.lines();
        let (debug, above): (Vec<_>, Vec<_>) = lines
            .iter()
            .filter(|line| line.contains(secret))
            .partition(|line| line.contains("DEBUG"));
        assert!(above.is_empty(), "{above:?}");
        assert!(!debug.is_empty(), "somebody has to be able to find it: {lines:?}");
    }
    host.close().await;
}

#[tokio::test]
async fn acp_a_start_that_fails_leaves_nothing_and_says_no_more_than_it_may() {
    let error = r#"{"code":-32603,"message":"SECRET_TOKEN","data":"/private/secret.txt"}"#;
    let cases = [
        (
            format!("hear; fail '{error}'; forever"),
            "(stage: initialize; category: error-response; error code: -32603)",
        ),
        (
            r#"hear; answer '{"protocolVersion":9}'; forever"#.to_owned(),
            "(stage: initialize; category: protocol-version)",
        ),
        (
            format!(
                "hear; answer '{{\"protocolVersion\":1}}'; hear; fail '{}'; forever",
                error.replace("-32603", "-32000")
            ),
            "(stage: session-new; category: authentication-required)",
        ),
        (
            "echo SECRET_TOKEN; exit 4".to_owned(),
            "(stage: initialize; category: process-exit; exit code: 4)",
        ),
        (
            r#"hear; answer '{"protocolVersion":1}'; hear; kill -9 $$"#.to_owned(),
            "(stage: session-new; category: process-exit; signal: SIGKILL)",
        ),
        (
            "exec 1>&-; forever".to_owned(),
            "(stage: initialize; category: output-closed)",
        ),
    ];
    for (script, said) in cases {
        let host = Host::new();
        host.install(AcpConfig {
            dispose_eof_grace_ms: 50.0,
            dispose_grace_ms: 500.0,
            ..Host::shell(&script)
        });
        let error = host.start("the task").await.expect_err("it cannot start");
        assert_eq!(
            error.to_string(),
            format!("subagent-acp: ACP subagent failure {said}")
        );
        host.assert_empty();
        host.close().await;
    }
}

#[tokio::test]
async fn acp_a_child_without_a_session_id_is_reaped() {
    for session in ["{}", r#"{"sessionId":""}"#, r#"{"sessionId":7}"#, "null"] {
        let host = Host::new();
        host.install(Host::shell(&format!(
            r#"hear; answer '{{"protocolVersion":1}}'; hear; answer '{session}'; hear; forever"#
        )));
        let error = host.start("the task").await.expect_err("no session");
        assert_eq!(
            error.to_string(),
            "subagent-acp: ACP child published without a session id",
            "{session}"
        );
        host.assert_empty();
        host.close().await;
    }
}

#[tokio::test]
async fn acp_a_program_that_is_not_there_is_a_start_that_failed() {
    let host = Host::new();
    let logged = LogCapture::start();
    host.install(AcpConfig::new("no-such-agent-SECRET_TOKEN"));
    let error = host.start("the task").await.expect_err("no program");
    assert_eq!(
        error.to_string(),
        "subagent-acp: ACP subagent failure (stage: process; category: unknown)"
    );
    let source = std::error::Error::source(&error);
    assert!(source.is_some(), "why stands behind it");
    assert!(logged.contains("subagent-acp \"acp\": child start failed: "));
    host.close().await;
}

#[tokio::test]
async fn acp_an_agent_that_is_gone_is_not_waited_for_although_its_output_is_open() {
    let host = Host::new();
    host.install(AcpConfig {
        dispose_grace_ms: 200.0,
        ..Host::shell("up; hear; say partial; sleep 600 & exit 5")
    });
    let run = host.start("the task").await.expect("it starts");
    let result = tokio::time::timeout(Duration::from_secs(20), run.result())
        .await
        .expect("it is seen")
        .expect("a result");
    assert_eq!(
        failure(&result),
        "ACP subagent failure (stage: prompt; category: process-exit; exit code: 5)"
    );
    assert_eq!(result.text(), "partial");
    run.dispose().await.expect("what it left is ended, too");
    host.assert_empty();
    host.close().await;
}

#[tokio::test]
async fn acp_an_answer_that_is_no_object_is_none() {
    let host = Host::new();
    let run = host.run("up; hear; answer '[]'; hear").await;
    assert_eq!(
        failure(&run.result().await.expect("a result")),
        "ACP subagent failure (stage: prompt; category: invalid-response)"
    );
    host.close().await;
}
