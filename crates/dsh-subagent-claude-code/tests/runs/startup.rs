//! Up to the publication: what a product is started with, and starts that come to nothing.

use std::collections::BTreeMap;
use std::error::Error;
use std::pin::pin;

use dsh_subagent_claude_code::{ClaudeCodeConfig, PermissionMode, Variable};
use dsh_testkit::LogCapture;

use crate::support::{ABORTED, Home, line, task_of};

/// What every start says that failed in the product.
fn start_failure(facts: &str) -> String {
    format!(
        "subagent-claude-code: {}",
        line(&format!("stage: query-start; category: unknown{facts}"))
    )
}

#[tokio::test]
async fn s225_the_product_gets_its_arguments_directory_environment_and_task() {
    let home = Home::new();
    let script = "echo \"$@\" > args; pwd > pwd; echo \"$AMBIENT ${REMOVED-none} $ADDED\" > env; opened; \
                  printf '%s\\n' \"$initialize\" \"$task\" > lines; answered; success done";
    let config = ClaudeCodeConfig {
        permission_mode: PermissionMode::Plan,
        env: BTreeMap::from([
            ("AMBIENT".to_owned(), "configured".into()),
            ("REMOVED".to_owned(), Variable::Removed),
            ("ADDED".to_owned(), "added".into()),
        ]),
        ..home.config(script)
    };
    home.install(config).expect("a provider");
    assert_eq!(home.result().await.text(), "done");
    assert_eq!(
        home.read("args"),
        "--output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio --disallowedTools \
         AskUserQuestion,ExitPlanMode --permission-mode plan --no-session-persistence\n"
    );
    let here = home.file(".").canonicalize().expect("it is there");
    assert_eq!(home.read("pwd").trim(), here.to_string_lossy());
    assert_eq!(home.read("env"), "configured none added\n");
    assert_eq!(
        home.read("lines"),
        "{\"type\":\"control_request\",\"request_id\":\"initialize\",\"request\":{\"subtype\":\"initialize\",\
         \"systemPrompt\":[\"\"],\"supportedDialogKinds\":[\"refusal_fallback_prompt\"]}}\n\
         {\"type\":\"user\",\"session_id\":\"\",\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\
         \"text\":\"the task\"}]},\"parent_tool_use_id\":null}\n"
    );
}

#[tokio::test]
async fn s239_a_run_is_published_when_the_product_has_answered() {
    let home = Home::of("opened; echo > opened; until_made go; answered; success done");
    let mut start = pin!(home.start());
    tokio::select! {
        _ = &mut start => panic!("published before the answer"),
        () = home.made("opened") => home.make("go"),
    }
    let run = start.await;
    assert_eq!(run.result().await.expect("a result").text(), "done");
    assert!(run.local_agent().is_none());
    assert_ne!(run.id(), home.parent.agent().id().to_string());
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s217_what_is_no_task_is_refused_and_starts_nothing() {
    let home = Home::of("");
    for (prompt, expected) in [
        (
            vec![],
            "subagent-claude-code: the one-shot task must contain only text blocks",
        ),
        (
            vec![dsh_llm::ContentBlock::text(" ")],
            "subagent-claude-code: the one-shot task must not be empty",
        ),
    ] {
        let mut request = home.request();
        request.prompt = prompt;
        assert_eq!(home.refused(request).await.to_string(), expected);
    }
    assert!(!home.was_started());
}

#[tokio::test]
async fn s223_without_a_directory_nothing_is_started() {
    let home = Home::of("");
    let nowhere = home.parent_in(None);
    assert_eq!(
        home.refused(task_of(nowhere.agent())).await.to_string(),
        "subagent-claude-code: no working directory for the child — delegate from a parent session that has one"
    );
    assert!(!home.was_started());
}

#[tokio::test]
async fn s223_a_wrong_directory_is_named_in_the_log_alone() {
    let log = LogCapture::start();
    let home = Home::of("");
    let wrong = home.parent_in(Some(home.file("SECRET_TOKEN")));
    let refused = home.refused(task_of(wrong.agent())).await;
    assert_eq!(refused.to_string(), start_failure(""));
    let cause = refused.source().expect("what is behind it").to_string();
    assert!(cause.contains("SECRET_TOKEN"), "{cause}");
    let logged = log
        .lines()
        .into_iter()
        .filter(|line| line.contains("child start failed") && line.contains("SECRET_TOKEN"));
    assert_eq!(logged.count(), 1);

    let cancelled = task_of(wrong.agent());
    cancelled.token.cancel();
    assert_eq!(
        home.refused(cancelled).await.to_string(),
        ABORTED,
        "that comes first"
    );
    assert!(!home.was_started());
}

#[tokio::test]
async fn s223_a_program_that_is_not_there_is_a_failed_start() {
    let home = Home::new();
    let config = ClaudeCodeConfig {
        program: Some("/private/secret.txt".into()),
        ..ClaudeCodeConfig::default()
    };
    home.install(config)
        .expect("nothing is looked for before a start");
    assert_eq!(home.refused(home.request()).await.to_string(), start_failure(""));
}

#[tokio::test]
async fn s248_a_cancelled_request_starts_nothing() {
    let home = Home::of("up; success done");
    let request = home.request();
    request.token.cancel();
    assert_eq!(home.refused(request).await.to_string(), ABORTED);
    assert!(!home.was_started());
}

#[tokio::test]
async fn s248_a_request_that_is_cancelled_before_the_publication_leaves_nothing() {
    let home = Home::of("opened; echo > opened; until_made never");
    let request = home.request();
    let token = request.token.clone();
    let (refused, ()) = tokio::join!(home.refused(request), async {
        home.made("opened").await;
        token.cancel();
    });
    assert_eq!(refused.to_string(), ABORTED);
    assert!(home.is_gone());
}

#[tokio::test]
async fn s248_a_request_that_is_cancelled_while_a_failed_start_is_taken_down_was_cancelled() {
    let home = Home::of(
        "trap 'echo > told; until_made go; exit 0' TERM\nopened\n\
         echo '{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\"request_id\":\"initialize\"}}'\n\
         until_made never",
    );
    let request = home.request();
    let token = request.token.clone();
    let (refused, ()) = tokio::join!(home.refused(request), async {
        home.made("told").await;
        token.cancel();
        home.make("go");
    });
    assert_eq!(refused.to_string(), ABORTED);
    assert!(home.is_gone());
}

#[tokio::test]
async fn s248_a_product_that_does_not_come_up_is_told_with_its_exit_and_is_gone() {
    for (script, facts) in [
        ("exit 7", "; exit code: 7"),
        ("opened; echo SECRET_TOKEN >&2; exit 1", "; exit code: 1"),
        ("kill -KILL $$", "; signal: SIGKILL"),
        ("opened; success 'too early'; exit 0", "; exit code: 0"),
    ] {
        let home = Home::of(script);
        let refused = home.refused(home.request()).await;
        assert_eq!(refused.to_string(), start_failure(facts), "{script}");
        assert!(home.is_gone());
    }
}

#[tokio::test]
async fn s248_a_product_that_refuses_to_begin_is_ended() {
    let log = LogCapture::start();
    let home = Home::of(
        "opened; sleep 600 & echo '{\"type\":\"control_response\",\"response\":{\"subtype\":\"error\",\
         \"request_id\":\"initialize\",\"error\":\"SECRET_TOKEN of a refusal\"}}'; wait",
    );
    let refused = home.refused(home.request()).await;
    assert_eq!(refused.to_string(), start_failure(""));
    assert!(home.is_gone());
    let told = log
        .lines()
        .into_iter()
        .filter(|line| line.contains("of a refusal"));
    assert!(told.clone().count() > 0 && told.clone().all(|line| line.contains("DEBUG")));
}
