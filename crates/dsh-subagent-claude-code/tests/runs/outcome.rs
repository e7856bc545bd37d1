//! What comes of runs.

use dsh_llm::ContentBlock;
use dsh_subagent::{RunResult, StopReason};
use dsh_testkit::LogCapture;
use serde_json::Value;

use crate::support::{Home, line};

const PERMISSION: &str = r#"echo '{"type":"control_request","request_id":"r-1","request":{"subtype":"can_use_tool","tool_name":"Write","tool_use_id":"t-1","input":{"file_path":"/private/secret.txt"}}}'"#;

const DENIED: &str = "Claude Code unattended decision (mode: dontAsk; request: tool permission; decision: denied): the provider \
                      does not request human approval";

fn diagnostic(result: &RunResult) -> &str {
    assert_eq!((&result.stop, result.output.len()), (&StopReason::Error, 0));
    result
        .diagnostic
        .as_ref()
        .expect("a failure says what it is")
        .as_str()
}

#[tokio::test]
async fn s239_the_answer_is_one_text_as_the_product_wrote_it() {
    let home = Home::of("up; echo garbage; success ' the answer '");
    let result = home.result().await;
    assert_eq!(result.output, [ContentBlock::text(" the answer ")]);
    assert_eq!((result.stop, result.diagnostic), (StopReason::Completed, None));
}

#[tokio::test]
async fn s240_a_failure_of_the_product_is_told_by_its_line_and_logged() {
    for subtype in [
        "error_during_execution",
        "error_max_turns",
        "error_max_budget_usd",
        "error_max_structured_output_retries",
    ] {
        let log = LogCapture::start();
        let home = Home::of(&format!("up; error {subtype}; exit 1"));
        let result = home.result().await;
        let said = line(&format!("stage: query-run; category: {subtype}"));
        assert_eq!(diagnostic(&result), said);
        let logged = log.lines().into_iter().filter(|event| {
            event.contains("subagent-claude-code \"claude-code\": child run failed (error)")
                && event.contains(&said)
        });
        let logged: Vec<String> = logged.collect();
        assert_eq!(logged.len(), 1);
        assert!(!logged[0].contains("SECRET_TOKEN"), "{logged:?}");
    }
}

#[tokio::test]
async fn s241_a_denial_stands_on_the_second_line_of_a_failure() {
    let home = Home::of(&format!(
        "up; {PERMISSION}; IFS= read -r answer; printf '%s' \"$answer\" > answer; error error_max_turns"
    ));
    let result = home.result().await;
    let first = line("stage: query-run; category: error_max_turns");
    assert_eq!(diagnostic(&result), format!("{first}\n{DENIED}"));
    let answer: Value = serde_json::from_str(&home.read("answer")).expect("JSON");
    let response = &answer["response"];
    assert_eq!(
        (&response["subtype"], &response["request_id"]),
        (&"success".into(), &"r-1".into())
    );
    assert_eq!(response["response"]["behavior"], "deny");
    assert_eq!(response["response"]["toolUseID"], "t-1");
}

#[tokio::test]
async fn s242_a_success_tells_no_denial_and_no_other_run_does() {
    let home = Home::new();
    for (name, script) in [
        (
            "denied",
            format!("up; {PERMISSION}; IFS= read -r answer; until_made go; success done"),
        ),
        ("failed", "up; until_made go; error error_max_turns".to_owned()),
    ] {
        let mut config = home.config(&script);
        config.provider_name = name.to_owned();
        home.install(config).expect("a provider");
    }
    let start = |name| home.subagents.start(name, home.request());
    let (denied, failed) = (
        start("denied").await.expect("it starts"),
        start("failed").await.expect("it starts"),
    );
    home.make("go");
    let result = denied.result().await.expect("a result");
    assert_eq!((result.text().as_str(), result.diagnostic), ("done", None));
    let result = failed.result().await.expect("a result");
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: error_max_turns")
    );
    for run in [denied, failed] {
        run.dispose().await.expect("nothing is left");
    }
}

#[tokio::test]
async fn s243_a_product_that_fails_behind_its_answer_has_none() {
    let home = Home::of("up; success 'the answer'; exit 3");
    let result = home.result().await;
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: unknown; exit code: 3")
    );
}

#[tokio::test]
async fn s245_an_exit_before_a_result_is_told_with_what_is_known() {
    for (script, said) in [
        ("exit 9", "stage: process; category: process-exit; exit code: 9"),
        (
            "kill -TERM $$",
            "stage: process; category: process-exit; signal: SIGTERM",
        ),
        ("exit 0", "stage: query-run; category: missing-result"),
    ] {
        let home = Home::of(&format!("up; {script}"));
        assert_eq!(diagnostic(&home.result().await), line(said), "{script}");
    }
}

#[tokio::test]
async fn s244_a_stream_that_ends_while_the_product_lives_on_has_no_result() {
    let home = Home::new();
    let mut config = home.config("up; exec >&-; until_made never");
    config.dispose_grace_ms = 50.0;
    home.install(config).expect("a provider");
    let result = home.result().await;
    assert_eq!(
        diagnostic(&result),
        line("stage: query-run; category: missing-result")
    );
}

/// The product does what the real one does: it goes on beyond its first result, and ends when nobody has more to say.
#[tokio::test]
async fn s238_the_input_is_closed_at_the_first_result_and_a_later_one_is_the_answer() {
    let home = Home::of(
        "up; echo '{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[{\"task_id\":\"b1\"}]}'\n\
         success first; until_closed; echo > closed; until_made go\n\
         echo '{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[]}'\n\
         echo '{\"type\":\"system\",\"subtype\":\"task_notification\",\"task_id\":\"b1\",\"status\":\"completed\"}'\n\
         success second",
    );
    let run = home.start().await;
    home.made("closed").await;
    tokio::select! {
        biased;
        result = run.result() => panic!("the stream has not ended: {result:?}"),
        () = std::future::ready(()) => home.make("go"),
    }
    let result = run.result().await.expect("a result");
    assert_eq!(result.output, [ContentBlock::text("second")]);
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s238_background_work_that_was_ended_is_told() {
    let home = Home::of(
        "up; echo '{\"type\":\"system\",\"subtype\":\"background_tasks_changed\",\"tasks\":[{\"task_id\":\"b1\"}]}'\n\
         success first; until_closed\n\
         echo '{\"type\":\"system\",\"subtype\":\"task_notification\",\"task_id\":\"b1\",\"status\":\"stopped\"}'",
    );
    assert_eq!(
        home.result().await.text(),
        "first\n[1 background task of Claude Code was ended with its run]"
    );
}

#[tokio::test]
async fn a_product_that_talks_before_it_listens_is_no_deadlock() {
    let home = Home::of(
        "head -c 300000 /dev/zero | tr '\\0' 'x'; echo; opened; printf '%s' \"$task\" | wc -c > length; answered\n\
         head -c 300000 /dev/zero | tr '\\0' 'x'; echo; success done",
    );
    let mut request = home.request();
    request.prompt = vec![ContentBlock::text("y".repeat(300_000))];
    let run = home
        .subagents
        .start("claude-code", request)
        .await
        .expect("it starts");
    assert_eq!(run.result().await.expect("a result").text(), "done");
    let length: usize = home.read("length").trim().parse().expect("a number");
    assert!(length > 300_000, "{length}");
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn a_product_that_never_stops_to_talk_gets_its_answer() {
    let home = Home::of(&format!(
        "up; {PERMISSION}; (until [ -e answered ]; do echo '{{}}'; done) & IFS= read -r answer; echo > answered; wait\n\
         success done"
    ));
    assert_eq!(home.result().await.text(), "done");
}

#[tokio::test]
async fn a_product_that_asks_and_does_not_listen_is_answered_only_so_often() {
    let home = Home::of(&format!(
        "up; n=0; while [ $n -lt 3000 ]; do {PERMISSION}; n=$((n + 1)); done; success done\n\
         n=0; while IFS= read -r line; do n=$((n + 1)); done; echo $n > answers"
    ));
    assert_eq!(home.result().await.text(), "done");
    let answers: u32 = home.read("answers").trim().parse().expect("a number");
    assert!((64..3000).contains(&answers), "{answers}");
}

#[tokio::test]
async fn what_it_left_running_may_hold_its_output_and_the_answer_comes_all_the_same() {
    let home = Home::new();
    let mut config = home.config("up; sleep 600 & success done; exit 0");
    config.dispose_grace_ms = 200.0;
    home.install(config).expect("a provider");
    assert_eq!(home.result().await.text(), "done");
}
