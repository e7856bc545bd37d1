//! Results in a shape that was asked for.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_llm::{CallId, ContentBlock};
use dsh_session::TurnEnd;
use dsh_subagent::{Run, StartRequest, StopReason};
use dsh_tools::{CallPolicy, PendingCall, Review, ToolContext, ToolResult, Verdict};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::nursery::{Child, Doing, Nursery};

const TOOL: &str = "structured_output";
const RECORDED: &str = "Structured output recorded.";

fn schema(property: &str) -> Value {
    json!({"type": "object", "properties": {property: {"type": "integer"}}, "required": [property]})
}

fn request(nursery: &Nursery, property: &str) -> StartRequest {
    StartRequest {
        output_schema: Some(schema(property)),
        ..nursery.request()
    }
}

async fn structured(nursery: &Nursery, property: &str) -> (Run, Child) {
    nursery.spawn_for(request(nursery, property)).await
}

async fn hands_over(doing: &mut Doing<'_>, nursery: &Nursery, value: Value) -> String {
    doing.call(&nursery.tools, TOOL, value).await
}

fn names(nursery: &Nursery, agent: &dsh_agent::Agent) -> Vec<String> {
    let definitions = nursery.tools.definitions_for(agent).into_iter();
    definitions.map(|tool| tool.name).collect()
}

#[tokio::test]
async fn s78_s80_s82_what_was_handed_over_is_the_result_and_nothing_runs_after_it() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            let before = doing.call(&nursery.tools, "echo", json!({"a": 1})).await;
            assert_eq!(before, r#"{"a":1}"#);
            assert!(!doing.turn.is_concluded());
            assert_eq!(hands_over(doing, &nursery, json!({"n": 7})).await, RECORDED);
            assert!(doing.turn.is_concluded(), "s79: no further step");
            for tool in ["echo", TOOL] {
                let denied = doing.call(&nursery.tools, tool, json!({"n": 8})).await;
                assert_eq!(
                    denied,
                    format!(
                        "Error: structured output already recorded: the run is complete, so `{tool}` is not executed"
                    )
                );
            }
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(
        (result.stop, result.structured),
        (StopReason::Completed, Some(json!({"n": 7})))
    );
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s84_what_is_said_to_a_child_that_has_handed_over_opens_nothing() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            let steered = doing.agent.steer(dsh_session::Message::user("wait"));
            steered.expect("it is at work");
            hands_over(doing, &nursery, json!({"n": 7})).await;
            let refused = doing.agent.steer(dsh_session::Message::user("and more"));
            refused.expect_err("it has done what it is for");
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.structured, Some(json!({"n": 7})));
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s81_nobody_who_allows_everything_brings_calls_back() {
    struct Generous;
    impl CallPolicy for Generous {}
    let nursery = Nursery::new();
    let (_run, mut child) = structured(&nursery, "n").await;
    let generous = nursery.tools.policy(&nursery.scope, Arc::new(Generous));
    drop(generous.expect("a policy"));
    child
        .turn(async |doing| {
            hands_over(doing, &nursery, json!({"n": 7})).await;
            let denied = doing.call(&nursery.tools, "echo", json!({})).await;
            assert!(denied.contains("is not executed"), "{denied}");
            TurnEnd::Completed
        })
        .await;
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s85_s107_s108_a_call_that_failed_counts_for_nothing_whatever_its_id_is() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            for wrong in [json!({"n": "seven"}), json!({}), json!([])] {
                let result = doing.execute(&nursery.tools, "same", TOOL, wrong).await;
                assert!(result.is_error);
                doing.commit("same", result);
                assert!(!doing.turn.is_concluded());
            }
            let result = doing.execute(&nursery.tools, "same", TOOL, json!({"n": 2})).await;
            doing.commit("same", result);
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.structured, Some(json!({"n": 2})));
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s107_s109_a_result_that_is_in_no_log_counts_for_nothing() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            let lost = doing.execute(&nursery.tools, "same", TOOL, json!({"n": 1})).await;
            assert!(!lost.is_error);
            doing.lose("same", lost);
            // Another call of the same id, which is no result.
            let echoed = doing.execute(&nursery.tools, "same", "echo", json!({})).await;
            doing.commit("same", echoed);
            assert!(!doing.turn.is_concluded());
            doing.say("no result");
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!((result.stop, result.structured), (StopReason::Error, None));
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s86_a_clean_end_without_a_result_is_an_error() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child.says("Here you are: 7").await;
    let result = run.result().await.expect("a result");
    assert_eq!((&result.stop, &result.structured), (&StopReason::Error, &None));
    assert_eq!(
        result.diagnostic.expect("a diagnostic").as_str(),
        "the subagent ended without handing over a structured result"
    );
    assert!(result.output.is_empty());
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s87_s88_a_failure_stays_one_and_a_cancellation_at_the_end_is_one() {
    let nursery = Nursery::new();
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |_| TurnEnd::Error {
            step: 1,
            message: "broken".to_owned(),
            code: None,
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.diagnostic.expect("a diagnostic").as_str(), "broken");
    drop(child);

    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            // The end of the turn is logged before anybody looks.
            let _ = &doing;
            run.cancel();
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!((result.stop, result.diagnostic), (StopReason::Aborted, None));
    drop(child);
    nursery.close().await;
}

/// Says this of every result of the tool.
struct Reviews(Review);

#[async_trait]
impl CallPolicy for Reviews {
    async fn after(&self, call: &PendingCall, _: &ToolResult) -> Review {
        match call.tool.as_str() {
            TOOL => self.0.clone(),
            _ => Review::Accept,
        }
    }
}

#[tokio::test]
async fn s91_s93_a_result_that_was_blocked_counts_for_nothing() {
    let nursery = Nursery::new();
    let blocks = Reviews(Review::Block {
        feedback: "not like this".to_owned(),
    });
    let installed = nursery
        .tools
        .policy(&nursery.scope, Arc::new(blocks))
        .expect("a policy");
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            let blocked = hands_over(doing, &nursery, json!({"n": 1})).await;
            assert!(blocked.contains("not like this"), "{blocked}");
            assert!(!doing.turn.is_concluded(), "it gets another step");
            TurnEnd::Completed
        })
        .await;
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Error);
    drop(child);
    installed.dispose().await;
    nursery.close().await;
}

#[tokio::test]
async fn s92_a_result_that_reads_otherwise_counts() {
    let nursery = Nursery::new();
    let replaces = Reviews(Review::Replace(vec![ContentBlock::text("noted")]));
    drop(
        nursery
            .tools
            .policy(&nursery.scope, Arc::new(replaces))
            .expect("a policy"),
    );
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            assert_eq!(hands_over(doing, &nursery, json!({"n": 1})).await, "noted");
            TurnEnd::Completed
        })
        .await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.structured, Some(json!({"n": 1})));
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s109_a_call_that_was_denied_counts_for_nothing() {
    struct Denies;
    #[async_trait]
    impl CallPolicy for Denies {
        async fn before(&self, _: &PendingCall) -> Verdict {
            Verdict::Deny {
                reason: "no".to_owned(),
            }
        }
    }
    let nursery = Nursery::new();
    drop(
        nursery
            .tools
            .policy(&nursery.scope, Arc::new(Denies))
            .expect("a policy"),
    );
    let (run, mut child) = structured(&nursery, "n").await;
    child
        .turn(async |doing| {
            hands_over(doing, &nursery, json!({"n": 1})).await;
            TurnEnd::Completed
        })
        .await;
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Error);
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s89_s90_a_shape_that_cannot_be_held_is_refused_before_there_is_a_child() {
    let nursery = Nursery::new();
    for shape in [json!({"type": "string"}), json!({"type": "object", "oneOf": []})] {
        let request = StartRequest {
            output_schema: Some(shape),
            ..nursery.request()
        };
        let error = nursery.start("spawn", request).await.expect_err("no shape");
        assert!(
            error.to_string().starts_with("unsupported output schema"),
            "{error}"
        );
        nursery.assert_childless();
    }
    nursery.close().await;
}

#[tokio::test]
async fn s98_s99_s100_s101_each_child_has_its_own_and_nobody_else_has_any() {
    let nursery = Nursery::new();
    let (first, mut one) = structured(&nursery, "n").await;
    let (second, mut two) = structured(&nursery, "m").await;
    let (_plain, plain) = nursery.spawn().await;
    assert_eq!(names(&nursery, &one.agent), ["echo", TOOL]);
    for agent in [&plain.agent, nursery.parent()] {
        assert_eq!(names(&nursery, agent), ["echo"]);
    }
    let shape = |child: &Child| {
        let definitions = nursery.tools.definitions_for(&child.agent);
        let tool = definitions.into_iter().find(|tool| tool.name == TOOL);
        tool.expect("it has one").input_schema
    };
    assert_eq!((shape(&one), shape(&two)), (schema("n"), schema("m")));
    // s94: the instruction comes with the tool, behind everything else.
    assert_eq!(one.instructions.len(), 1);
    assert_eq!(one.instructions[0].order, 190);
    assert!(one.instructions[0].text.contains(TOOL));
    assert!(plain.instructions.is_empty());
    for (child, value) in [(&mut one, json!({"n": 1})), (&mut two, json!({"m": 2}))] {
        child
            .turn(async |doing| {
                hands_over(doing, &nursery, value.clone()).await;
                TurnEnd::Completed
            })
            .await;
    }
    let value = async |run: &Run| run.result().await.expect("a result").structured;
    assert_eq!(value(&first).await, Some(json!({"n": 1})));
    assert_eq!(value(&second).await, Some(json!({"m": 2})));
    drop((one, two, plain));
    nursery.close().await;
}

#[tokio::test]
async fn s105_s106_nobody_else_can_call_it() {
    let nursery = Nursery::new();
    let (_run, child) = structured(&nursery, "n").await;
    for caller in [Some(nursery.parent().clone()), None] {
        let context = ToolContext {
            caller,
            token: CancellationToken::new(),
            call_id: CallId::new("c"),
        };
        let result = nursery.tools.execute(TOOL, json!({"n": 1}), context).await;
        assert_eq!(result.error.expect("a failure").code, "UNKNOWN_TOOL");
    }
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s104_s129_the_tool_lives_with_the_child() {
    let nursery = Nursery::new();
    let provider = dsh_subagent_inprocess::InProcessConfig {
        provider_name: Some("mine".to_owned()),
    };
    let origin = dsh_subagent_inprocess::Origin::Fork;
    let installed = dsh_subagent_inprocess::install(&nursery.scope, nursery.deps(), origin, &provider)
        .expect("a new name");
    let run = nursery
        .start("mine", request(&nursery, "n"))
        .await
        .expect("it starts");
    let mut child = nursery.born();
    installed.dispose().await;
    child
        .turn(async |doing| {
            hands_over(doing, &nursery, json!({"n": 1})).await;
            TurnEnd::Completed
        })
        .await;
    let agent = child.agent.clone();
    drop(child);
    assert_eq!(
        run.result().await.expect("a result").structured,
        Some(json!({"n": 1}))
    );
    run.dispose().await.expect("it goes");
    assert_eq!(names(&nursery, &agent), ["echo"]);
    nursery.close().await;
}

#[tokio::test]
async fn a_filter_leaves_the_tool_of_the_result() {
    let nursery = Nursery::new();
    let request = StartRequest {
        tool_filter: Some(dsh_subagent::ToolFilter {
            allow: Some(Vec::new()),
            deny: None,
        }),
        ..request(&nursery, "n")
    };
    let (_run, child) = nursery.spawn_for(request).await;
    assert_eq!(names(&nursery, &child.agent), [TOOL]);
    drop(child);
    nursery.close().await;
}
