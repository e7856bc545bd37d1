//! Results in a shape that was asked for, with the real loop.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_subagent::StopReason;
use dsh_tools::{CallPolicy, PendingCall, Review, ToolResult};
use serde_json::{Value, json};

use super::family::{Family, calls, delegates, runs, says};
use super::family::{ends, result};

fn schema() -> Value {
    json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
}

fn hands_over(value: Value) -> Value {
    json!({"name": "structured_output", "arguments": value})
}

fn call(value: Value) -> Value {
    calls("structured_output", value)
}

fn bash(command: &str) -> Value {
    runs(command)["tool_calls"][0].clone()
}

#[tokio::test]
async fn s78_s79_a_result_that_was_handed_over_ends_the_turn() {
    let family = Family::new(&[("spawn", json!([call(json!({"n": 7}))]))]).await;
    let run = family.structured(schema()).await;
    let got = run.result().await.expect("a result");
    assert_eq!(
        (got.stop, got.structured, got.diagnostic),
        (StopReason::Completed, Some(json!({"n": 7})), None)
    );
    let child = run.local_agent().expect("it is in this process").clone();
    assert_eq!(result(&child, "call-1"), "Structured output recorded.");
    assert_eq!(ends(&child).len(), 1);
    assert_eq!(family.requests("spawn").len(), 1, "no further step");
    run.dispose().await.expect("it goes");
    family.close().await;
}

#[tokio::test]
async fn s80_s82_calls_before_it_run_and_calls_behind_it_do_not() {
    let batch = [
        bash("touch before"),
        hands_over(json!({"n": 7})),
        bash("touch behind"),
        hands_over(json!({"n": 8})),
    ];
    let family = Family::new(&[("spawn", json!([{ "tool_calls": batch }]))]).await;
    let run = family.structured(schema()).await;
    let got = run.result().await.expect("a result");
    assert_eq!(got.structured, Some(json!({"n": 7})));
    let child = run.local_agent().expect("it is in this process").clone();
    assert_eq!(
        result(&child, "call-3"),
        "Error: structured output already recorded: the run is complete, so `bash` is not executed"
    );
    assert!(result(&child, "call-4").contains("`structured_output` is not executed"));
    assert!(family.room.file("before").exists());
    assert!(!family.room.file("behind").exists());
    family.close().await;
}

#[tokio::test]
async fn s85_what_does_not_fit_is_an_error_and_the_same_turn_goes_on() {
    let family = Family::new(&[(
        "spawn",
        json!([call(json!({"n": "seven"})), {"expect": ["n"], "tool_calls": [hands_over(json!({"n": 7}))]}]),
    )])
    .await;
    let run = family.structured(schema()).await;
    let got = run.result().await.expect("a result");
    assert_eq!(got.structured, Some(json!({"n": 7})));
    let child = run.local_agent().expect("it is in this process").clone();
    assert!(result(&child, "call-1").starts_with("Error: "));
    assert_eq!(ends(&child).len(), 1, "one turn");
    family.close().await;
}

#[tokio::test]
async fn s86_who_only_talks_is_asked_once() {
    let family = Family::new(&[("spawn", json!([says("It is 7.")]))]).await;
    let run = family.structured(schema()).await;
    let got = run.result().await.expect("a result");
    assert_eq!((got.stop, got.structured), (StopReason::Error, None));
    let asked = family.requests("spawn");
    assert_eq!((asked.len(), asked[0].messages.len()), (1, 1));
    family.close().await;
}

#[tokio::test]
async fn s87_a_model_that_fails_is_a_failure() {
    let family = Family::new(&[("spawn", json!([{"error": {"message": "on holiday"}}]))]).await;
    let got = family
        .structured(schema())
        .await
        .result()
        .await
        .expect("a result");
    assert_eq!(got.stop, StopReason::Error);
    assert_eq!(got.diagnostic.expect("a diagnostic").as_str(), "on holiday");
    family.close().await;
}

/// Blocks the first result of the tool.
struct OnceBlocked(std::sync::Once);

#[async_trait]
impl CallPolicy for OnceBlocked {
    async fn after(&self, call: &PendingCall, _: &ToolResult) -> Review {
        let mut review = Review::Accept;
        if call.tool == "structured_output" {
            self.0.call_once(|| {
                review = Review::Block {
                    feedback: "think again".to_owned(),
                };
            });
        }
        review
    }
}

#[tokio::test]
async fn s91_s107_a_result_that_was_blocked_is_none_and_the_model_gets_another_step() {
    let family = Family::new(&[(
        "spawn",
        json!([call(json!({"n": 1})), {"expect": ["think again"], "tool_calls": [hands_over(json!({"n": 2}))]}]),
    )])
    .await;
    let context = family.context();
    let policy = Arc::new(OnceBlocked(std::sync::Once::new()));
    drop(context.tools.policy(&context.scope, policy).expect("a policy"));
    let got = family
        .structured(schema())
        .await
        .result()
        .await
        .expect("a result");
    assert_eq!(got.structured, Some(json!({"n": 2})));
    family.close().await;
}

#[tokio::test]
async fn s94_s98_s100_s102_only_who_is_asked_for_a_result_is_told_how_to_hand_it_over() {
    let family = Family::new(&[
        ("lead", json!([delegates("subagent", "Talk."), says("I see.")])),
        ("spawn", json!([says("I talk."), call(json!({"n": 7}))])),
    ])
    .await;
    family.ask("Go.").await;
    let run = family.structured(schema()).await;
    run.result().await.expect("a result");
    let asked = family.requests("spawn");
    let (plain, structured) = (&asked[0].header, &asked[1].header);
    let names = |header: &dsh_llm::RequestHeader| -> Vec<String> {
        header.tools.iter().map(|tool| tool.name.clone()).collect()
    };
    let mut with = names(plain);
    assert!(!with.contains(&"structured_output".to_owned()));
    with.push("structured_output".to_owned());
    with.sort();
    assert_eq!(names(structured), with, "in the order of all tools");
    let own = structured.system.strip_prefix(&plain.system);
    let own = own.expect("all that stands there stays, in front");
    assert!(own.contains("structured_output"), "{own}");
    let tool = structured
        .tools
        .iter()
        .find(|tool| tool.name == "structured_output");
    assert_eq!(tool.expect("it has the tool").parameters, schema());
    assert!(
        !family.requests("lead")[0]
            .header
            .system
            .contains("structured_output")
    );
    family.close().await;
}

#[tokio::test]
async fn s101_two_at_once_hand_over_each_its_own() {
    let both = json!([call(json!({"n": 1})), call(json!({"n": 2}))]);
    let family = Family::new(&[("spawn", both)]).await;
    let (one, other) = tokio::join!(family.structured(schema()), family.structured(schema()));
    let (one, other) = tokio::join!(one.result(), other.result());
    let mut values = [one, other].map(|got| got.expect("a result").structured.expect("a value")["n"].clone());
    values.sort_by_key(|value| value.as_u64());
    assert_eq!(values, [json!(1), json!(2)]);
    family.close().await;
}
