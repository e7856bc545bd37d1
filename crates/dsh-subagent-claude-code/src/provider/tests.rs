use std::error::Error;

use super::*;

fn provider() -> ClaudeCode {
    ClaudeCode {
        name: "claude-code".to_owned(),
        launcher: Launcher::groups(),
        program: "/claude".into(),
        env: Vec::new(),
        mode: PermissionMode::DontAsk,
        grace: Duration::ZERO,
    }
}

const START: &str = "subagent-claude-code: Product subagent failure (product: Claude Code; stage: query-start; category: unknown";
const TEARDOWN: &str = "subagent-claude-code: Product subagent failure (product: Claude Code; stage: teardown; category: unknown";

fn left() -> ReleaseError {
    ReleaseError::Survivors("4242 SECRET_TOKEN".to_owned())
}

#[test]
fn s248_a_start_that_left_something_says_both_whether_it_was_cancelled_or_not() {
    let (token, cancelled) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel();
    for token in [token, cancelled] {
        let exited = Some(LeaderExit::Code(1));
        let failure = start_failure().with_exit(exited).caused_by("SECRET_TOKEN");
        let told = provider().not_started(failure, &token, Err(left()), exited);
        assert_eq!(
            told.to_string(),
            format!("{START}; exit code: 1); {TEARDOWN}; exit code: 1)")
        );
        assert!(told.rollback().is_some());
        let failure = told.source().expect("what failed");
        let cause = failure.source().expect("what is behind it");
        assert_eq!(cause.to_string(), "SECRET_TOKEN");
    }
}

#[test]
fn s250_a_release_that_failed_is_told_by_its_line_and_keeps_its_cause() {
    let fault = not_released(left(), Some(LeaderExit::Code(0)));
    assert_eq!(fault.to_string(), format!("{TEARDOWN}; exit code: 0)"));
    let cause = fault.source().expect("what is behind it").to_string();
    assert!(cause.contains("SECRET_TOKEN"), "{cause}");
}
