use std::error::Error;

use dsh_subagent_process::ReleaseError;
use dsh_subprocess::LeaderExit;

use super::*;
use crate::NAME;
use crate::failure::SUBJECT;

fn provider() -> ClaudeCode {
    ClaudeCode {
        reports: Reports::new(NAME, SUBJECT, "claude-code"),
        launcher: Launcher::groups(),
        hurry: CancellationToken::new(),
        program: "/claude".into(),
        env: Vec::new(),
        mode: PermissionMode::DontAsk,
        grace: Duration::ZERO,
    }
}

const START: &str = "subagent-claude-code: Product subagent failure (product: Claude Code; stage: query-start; category: unknown";
const TEARDOWN: &str = "subagent-claude-code: Product subagent failure (product: Claude Code; stage: teardown; category: unknown";

#[test]
fn s248_a_start_that_left_something_says_both_whether_it_was_cancelled_or_not() {
    let (token, cancelled) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel();
    for token in [token, cancelled] {
        let (provider, exited) = (provider(), Some(LeaderExit::Code(1)));
        let left = ReleaseError::Survivors("4242 SECRET_TOKEN".to_owned());
        let unreleased = provider.reports.unreleased(left, exited);
        let failure = start_failure().with_exit(exited).caused_by("SECRET_TOKEN");
        let told = provider.not_started(failure, &token, Err(unreleased));
        assert_eq!(
            told.to_string(),
            format!("{START}; exit code: 1); {TEARDOWN}; exit code: 1)")
        );
        assert!(told.rollback().is_some());
        assert_eq!(
            told.source().expect("what is behind it").to_string(),
            "SECRET_TOKEN"
        );
    }
}
