//! Tool calls of one answer.

use std::num::NonZeroUsize;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent_loop::LoopConfig;
use dsh_llm::{CallId, Chunk, FinishReason};
use dsh_session::EventData;
use dsh_testkit::{Gate, eventually};
use dsh_tools::{Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput};
use serde_json::Value;

use crate::played::{Reply, Room, ask, calls, inject, named, says, story, user};

#[tokio::test]
async fn core46_parallel_calls_overlap_and_their_results_come_in_the_models_order() {
    let room = Room::new([calls(&[("c1", "a", ""), ("c2", "b", "")]), says("done")]);
    let (a, b) = (
        room.tool("a", Concurrency::Parallel),
        room.tool("b", Concurrency::Parallel),
    );
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    a.entered.opened().await;
    b.entered.opened().await;
    b.gate.open();
    tokio::task::yield_now().await;
    a.gate.open();
    agent.agent().when_idle().await;
    let words = story(agent.agent());
    assert_eq!(words[5..9], ["call c1", "call c2", "result c1", "result c2"]);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core46_an_exclusive_call_is_a_barrier() {
    let room = Room::new([
        calls(&[("c1", "a", ""), ("c2", "x", ""), ("c3", "b", "")]),
        says("done"),
    ]);
    let (a, b) = (
        room.tool("a", Concurrency::Parallel),
        room.tool("b", Concurrency::Parallel),
    );
    let x = room.tool("x", Concurrency::Exclusive);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    a.entered.opened().await;
    assert!(!x.entered.is_open());
    a.gate.open();
    x.entered.opened().await;
    assert!(!b.entered.is_open());
    x.gate.open();
    b.entered.opened().await;
    b.gate.open();
    agent.agent().when_idle().await;
    let words = story(agent.agent());
    assert_eq!(
        words[5..11],
        [
            "call c1",
            "result c1",
            "call c2",
            "result c2",
            "call c3",
            "result c3"
        ]
    );
}

#[tokio::test]
async fn core46_the_limit_of_one_runs_calls_one_by_one() {
    let room = Room::new([calls(&[("c1", "a", ""), ("c2", "b", "")]), says("done")]);
    let (a, b) = (
        room.tool("a", Concurrency::Parallel),
        room.tool("b", Concurrency::Parallel),
    );
    let agent = room
        .agent_with(LoopConfig {
            max_parallel_tool_calls: NonZeroUsize::MIN,
            ..LoopConfig::default()
        })
        .await;
    agent.agent().follow_up(user("go")).unwrap();
    a.entered.opened().await;
    assert!(!b.entered.is_open());
    a.gate.open();
    b.entered.opened().await;
    b.gate.open();
    agent.agent().when_idle().await;
}

#[tokio::test]
async fn core42_core50_unknown_tools_and_arguments_that_are_no_json_are_results() {
    let room = Room::new([
        calls(&[("c1", "none", "{}"), ("c2", "look", "not json")]),
        says("done"),
    ]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert_eq!(
        room.asked()[1][2..],
        [r#"c1=Error: unknown tool "none""#, "c2=look"]
    );
    assert_eq!(story(agent.agent()).last().unwrap(), "end completed");
}

#[tokio::test]
async fn calls_without_ids_or_with_the_same_get_ids_of_their_own() {
    let call = |index| Chunk::ToolCallDelta {
        index,
        id: (index > 0).then(|| CallId::new("same")),
        name: Some("look".to_owned()),
        arguments: String::new(),
    };
    let chunks = vec![call(0), call(1), call(2), Chunk::Finish(FinishReason::ToolCalls)];
    let room = Room::new([Reply::Chunks(chunks), says("done")]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert_eq!(
        room.asked()[1][2..],
        ["call-1-1-0=look", "same=look", "call-1-1-2=look"]
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn an_id_that_is_made_is_none_that_the_model_has_chosen() {
    let call = |index, id: Option<&str>| Chunk::ToolCallDelta {
        index,
        id: id.map(CallId::new),
        name: Some("look".to_owned()),
        arguments: String::new(),
    };
    let chunks = vec![
        call(0, Some("call-1-1-1")),
        call(1, None),
        call(2, Some("call-1-1-2")),
        Chunk::Finish(FinishReason::ToolCalls),
    ];
    let room = Room::new([Reply::Chunks(chunks), says("done")]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert_eq!(
        room.asked()[1][2..],
        ["call-1-1-1=look", "call-1-1-2=look", "call-1-1-3=look"]
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core47_core34_an_abort_starts_nothing_more_and_pairs_every_call_with_a_result() {
    let room = Room::new([
        calls(&[("c1", "a", ""), ("c2", "x", ""), ("c3", "b", "")]),
        says("on"),
    ]);
    let a = room.tool("a", Concurrency::Parallel);
    let x = room.tool("x", Concurrency::Exclusive);
    let b = room.tool("b", Concurrency::Parallel);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    a.entered.opened().await;
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert!(!x.entered.is_open() && !b.entered.is_open());
    let events = agent.agent().session().events();
    let codes: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::ToolResult { error, .. } => Some(error.as_ref().unwrap().code.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(codes, ["TOOL_ABORTED", "ABORTED", "ABORTED"]);
    assert_eq!(story(agent.agent()).last().unwrap(), "end aborted");
    // The next request is one that a provider takes: every call has its result.
    ask(&agent, "go on").await;
    let skipped = "Error: tool call skipped because the step was aborted before execution";
    assert_eq!(
        room.asked()[1],
        [
            "go",
            "<a><x><b>",
            "c1=Error: tool call aborted",
            &format!("c2={skipped}"),
            &format!("c3={skipped}"),
            "go on"
        ]
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn a_rolling_pool_starts_the_next_call_when_any_has_ended() {
    let room = Room::new([
        calls(&[("c1", "a", ""), ("c2", "b", ""), ("c3", "c", "")]),
        says("done"),
    ]);
    let parallel = |name| room.tool(name, Concurrency::Parallel);
    let (a, b, c) = (parallel("a"), parallel("b"), parallel("c"));
    let agent = room
        .agent_with(LoopConfig {
            max_parallel_tool_calls: NonZeroUsize::MIN.saturating_add(1),
            ..LoopConfig::default()
        })
        .await;
    agent.agent().follow_up(user("go")).unwrap();
    a.entered.opened().await;
    b.entered.opened().await;
    assert!(!c.entered.is_open());
    b.gate.open();
    eventually("the third starts while the first runs", || c.entered.is_open()).await;
    c.gate.open();
    a.gate.open();
    agent.agent().when_idle().await;
    assert_eq!(room.asked()[1][2..], ["c1=a", "c2=b", "c3=c"]);
}

/// May overlap once the first gate is open; says by the second that it runs.
struct Fickle(Gate, Gate);

#[async_trait]
impl Tool for Fickle {
    fn definition(&self) -> ToolDefinition {
        named("fickle")
    }

    fn concurrency(&self, _: &Value) -> Concurrency {
        if self.0.is_open() {
            Concurrency::Parallel
        } else {
            Concurrency::Exclusive
        }
    }

    async fn call(&self, _: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        self.1.open();
        ctx.token.cancelled().await;
        Err(ToolError::new("cancelled"))
    }
}

#[tokio::test]
async fn core46_whether_a_call_may_overlap_is_asked_again_after_those_before_it() {
    let room = Room::new([calls(&[("c1", "x", ""), ("c2", "fickle", ""), ("c3", "b", "")])]);
    let x = room.tool("x", Concurrency::Exclusive);
    let b = room.tool("b", Concurrency::Parallel);
    let now = Gate::new();
    let fickle = Fickle(now.clone(), Gate::new());
    room.tools.register(&room.scope, Arc::new(fickle)).unwrap();
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    x.entered.opened().await;
    now.open();
    x.gate.open();
    b.entered.opened().await;
    agent.agent().cancel("it overlaps");
    agent.agent().when_idle().await;
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core46_a_call_that_may_overlap_by_now_does_not_wait_for_all_before_it() {
    let room = Room::new([calls(&[("c1", "a", ""), ("c2", "b", ""), ("c3", "fickle", "")])]);
    let (a, b) = (
        room.tool("a", Concurrency::Parallel),
        room.tool("b", Concurrency::Parallel),
    );
    let (now, runs) = (Gate::new(), Gate::new());
    let fickle = Fickle(now.clone(), runs.clone());
    room.tools.register(&room.scope, Arc::new(fickle)).unwrap();
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    b.entered.opened().await;
    assert!(!runs.is_open());
    now.open();
    a.gate.open();
    eventually("it runs beside b", || runs.is_open()).await;
    agent.agent().cancel("it overlaps");
    agent.agent().when_idle().await;
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core22_what_comes_during_a_batch_that_is_aborted_is_told_after_all_its_results() {
    let room = Room::new([calls(&[("c1", "slow", ""), ("c2", "look", "")]), says("on")]);
    let slow = room.tool("slow", Concurrency::Exclusive);
    room.quick("look");
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    slow.entered.opened().await;
    inject(agent.agent(), "n1");
    inject(agent.agent(), "n2");
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert_eq!(agent.agent().inbox().pending(), 2, "a stop is not answered");
    ask(&agent, "go on").await;
    assert_eq!(room.asked()[1][4..], ["n1", "n2", "go on"]);
    room.check_requests(agent.agent());
}
