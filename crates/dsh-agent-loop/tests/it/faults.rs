//! What others do wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use dsh_agent_loop::{LoopConfig, ToolOrder};
use dsh_llm::CallId;
use dsh_session::{EventData, TurnEnd};
use dsh_testkit::LogCapture;
use dsh_tools::{
    CallPolicy, Concurrency, Delivery, PendingCall, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput,
    Verdict,
};
use serde_json::{Value, json};

use crate::played::{Reply, Room, ask, calls, inject, named, says, story, user};

fn last_end(room: &Room) -> TurnEnd {
    let agent = room.agents.get(&dsh_session::SessionId::new("s-1")).unwrap();
    match agent.session().events().pop().unwrap().data {
        EventData::TurnEnd { reason, .. } => reason,
        other => unreachable!("{other:?}"),
    }
}

#[tokio::test]
async fn core42_an_adapter_that_panics_ends_the_turn_and_not_the_driver() {
    let room = Room::new([Reply::Panics, says("hello")]);
    let agent = room.agent().await;
    ask(&agent, "one").await;
    let TurnEnd::Error { step, message, code } = last_end(&room) else {
        unreachable!()
    };
    assert_eq!((step, code.as_deref()), (1, Some("ADAPTER_PANICKED")));
    assert!(message.contains("a bug of the adapter"), "{message}");
    ask(&agent, "two").await;
    assert_eq!(last_end(&room), TurnEnd::Completed);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core33_an_adapter_that_does_not_hear_of_a_cancellation_is_dropped() {
    let room = Room::new([Reply::Deaf, says("hello")]);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    room.model_is_asked().await;
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert_eq!(
        story(agent.agent())[2..],
        ["step 1", "header initial", "/step", "end aborted"]
    );
    ask(&agent, "again").await;
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core19_disposal_before_the_answer_begins_closes_the_step() {
    let room = Room::new([Reply::Deaf]);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    room.model_is_asked().await;
    agent.dispose().await.unwrap();
    assert_eq!(
        story(agent.agent())[2..],
        ["step 1", "header initial", "/step", "end disposed"]
    );
    room.check_requests(agent.agent());
}

/// Cancels its own agent from within its body.
struct Cancels;

#[async_trait]
impl Tool for Cancels {
    fn definition(&self) -> ToolDefinition {
        named("cancels")
    }

    async fn call(&self, _: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.caller.unwrap().cancel("from within");
        Ok(ToolOutput::text("done"))
    }
}

#[tokio::test]
async fn core33_a_cancellation_from_within_a_call_ends_the_turn_after_it() {
    let room = Room::new([calls(&[("c1", "cancels", ""), ("c2", "look", "")]), says("on")]);
    room.tools.register(&room.scope, Arc::new(Cancels)).unwrap();
    let look = room.tool("look", Concurrency::Exclusive);
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert!(!look.entered.is_open());
    let reason = "from within".to_owned();
    assert_eq!(last_end(&room), TurnEnd::Aborted { reason });
    ask(&agent, "go on").await;
    room.check_requests(agent.agent());
}

/// Never says whether a call may run.
struct Undecided;

#[async_trait]
impl CallPolicy for Undecided {
    async fn before(&self, _: &PendingCall) -> Verdict {
        std::future::pending().await
    }
}

#[tokio::test]
async fn core33_a_cancellation_while_a_call_is_decided_about_ends_the_turn() {
    let room = Room::new([calls(&[("c1", "look", "")]), says("on")]);
    let look = room.tool("look", Concurrency::Exclusive);
    let policy = room.tools.policy(&room.scope, Arc::new(Undecided)).unwrap();
    let agent = room.agent().await;
    let mut log = agent.agent().session().subscribe();
    agent.agent().follow_up(user("go")).unwrap();
    while !log
        .next()
        .await
        .iter()
        .any(|event| event.data.kind() == "tool/call")
    {}
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert!(!look.entered.is_open());
    assert_eq!(
        story(agent.agent())[4..],
        ["assistant", "call c1", "result c1", "/step", "end aborted"]
    );
    policy.dispose().await;
    ask(&agent, "go on").await;
    room.check_requests(agent.agent());
}

/// Its value is nested deeper than a log can hold.
struct Deep(Arc<AtomicBool>);

#[async_trait]
impl Tool for Deep {
    fn definition(&self) -> ToolDefinition {
        named("deep")
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let mut value = json!("bottom");
        for _ in 0..200 {
            value = json!([value]);
        }
        let told = Arc::clone(&self.0);
        let mut output = ToolOutput::text("it is deep")
            .delivers(Delivery::new(move || told.store(true, Ordering::SeqCst)));
        output.value = Some(value);
        Ok(output)
    }
}

#[tokio::test]
async fn a_value_that_the_log_cannot_hold_is_left_out_and_the_turn_goes_on() {
    let room = Room::new([calls(&[("c1", "deep", "")]), says("I see")]);
    let told = Arc::new(AtomicBool::new(false));
    room.tools
        .register(&room.scope, Arc::new(Deep(Arc::clone(&told))))
        .unwrap();
    let log = LogCapture::start();
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert_eq!(room.asked()[1], ["go", "<deep>", "c1=it is deep"]);
    assert_eq!(last_end(&room), TurnEnd::Completed);
    let events = agent.agent().session().events();
    let result = events
        .iter()
        .find(|event| event.data.kind() == "tool/result")
        .unwrap();
    let EventData::ToolResult {
        call_id,
        value,
        is_error,
        ..
    } = &result.data
    else {
        unreachable!()
    };
    assert_eq!((call_id, value, *is_error), (&CallId::new("c1"), &None, false));
    assert!(told.load(Ordering::SeqCst), "the model has it");
    assert!(
        log.contains("a value that is nested too deep"),
        "{:?}",
        log.lines()
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core56_what_cannot_be_logged_is_not_told_and_costs_no_driver() {
    let room = Room::new([says("hello")]);
    let agent = room.agent().await;
    let session = agent.agent().session();
    // Somebody else writes to the log, and leaves a turn open.
    let trigger = dsh_session::TurnTrigger::Message;
    session.append(EventData::TurnStart { turn: 1, trigger }).unwrap();
    let log = LogCapture::start();
    inject(agent.agent(), "n1");
    dsh_testkit::eventually("a turn is tried", || log.contains("a turn was not begun")).await;
    agent.agent().when_idle().await;
    assert_eq!(agent.agent().inbox().pending(), 1, "it was not told");
    session.wind_up(TurnEnd::Completed);
    ask(&agent, "hi").await;
    assert_eq!(room.asked(), [["n1", "hi"]]);
    assert_eq!(last_end(&room), TurnEnd::Completed);
}

/// Ends its own turn in the log.
struct Meddles(Arc<AtomicBool>);

#[async_trait]
impl Tool for Meddles {
    fn definition(&self) -> ToolDefinition {
        named("meddles")
    }

    async fn call(&self, _: Value, ctx: ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.caller.unwrap().session().wind_up(TurnEnd::Completed);
        let told = Arc::clone(&self.0);
        let told = Delivery::new(move || told.store(true, Ordering::SeqCst));
        Ok(ToolOutput::text("done").delivers(told))
    }
}

#[tokio::test]
async fn core56_a_result_that_cannot_be_logged_delivers_nothing() {
    let room = Room::new([calls(&[("c1", "meddles", ""), ("c2", "look", "")]), says("hello")]);
    let look = room.tool("look", Concurrency::Exclusive);
    let told = Arc::new(AtomicBool::new(false));
    let meddles = Meddles(Arc::clone(&told));
    room.tools.register(&room.scope, Arc::new(meddles)).unwrap();
    let agent = room.agent().await;
    ask(&agent, "go").await;
    assert!(!told.load(Ordering::SeqCst), "the model will never have it");
    assert!(!look.entered.is_open(), "nothing starts that cannot be logged");
    ask(&agent, "again").await;
    assert_eq!(last_end(&room), TurnEnd::Completed);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core53_an_order_that_names_no_tool_ends_the_turn_before_any_request() {
    let room = Room::new([]);
    let names = ["none", "<unlisted-tools>"].map(str::to_owned);
    let agent = room
        .agent_with(LoopConfig {
            tool_order: ToolOrder::new(&names).unwrap(),
            ..LoopConfig::default()
        })
        .await;
    ask(&agent, "hi").await;
    assert_eq!(story(agent.agent()), ["turn 1", "user hi", "end error"]);
    let TurnEnd::Error { code, .. } = last_end(&room) else {
        unreachable!()
    };
    assert_eq!(code.as_deref(), Some("TOOL_ORDER"));
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core38_who_looks_and_does_not_keep_up_or_goes_away_holds_up_nobody() {
    let words = "word ".repeat(3_000);
    let chunks = words.split_inclusive(' ').map(crate::played::text_chunk);
    let end = dsh_llm::Chunk::Finish(dsh_llm::FinishReason::Stop);
    let room = Room::new([Reply::Chunks(chunks.chain([end]).collect()), says("two")]);
    let agent = room.agent().await;
    let (mut slow, gone) = (agent.live(), agent.live());
    drop(gone);
    ask(&agent, "hi").await;
    assert!(slow.recv().await.is_err(), "it has missed some");
    assert!(slow.recv().await.is_ok());
    drop(slow);
    ask(&agent, "again").await;
    assert_eq!(room.asked()[1], ["hi", words.as_str(), "again"]);
    room.check_requests(agent.agent());
}
