//! Cancellation and disposal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent_loop::LoopConfig;
use dsh_llm::text_of;
use dsh_session::{EventData, TurnEnd};
use dsh_testkit::{Gate, LogCapture, eventually};
use dsh_tools::{Concurrency, Tool, ToolContext, ToolDefinition, ToolError, ToolOutput};
use serde_json::Value;
use tokio::time::Instant;

use crate::played::{Reply, Room, ask, calls, inject, named, says, story, user};

#[tokio::test]
async fn core32_a_cancellation_in_the_middle_of_an_answer_keeps_what_was_said() {
    let room = Room::new([Reply::Hang("so far"), says("on")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    let events = agent.agent().session().events();
    let reason = "enough".to_owned();
    let end = &events.last().unwrap().data;
    assert_eq!(
        *end,
        EventData::TurnEnd {
            turn: 1,
            reason: TurnEnd::Aborted { reason }
        }
    );
    assert_eq!(
        story(agent.agent())[2..],
        ["step 1", "header initial", "interrupted", "/step", "end aborted"]
    );
    ask(&agent, "go on").await;
    assert_eq!(room.asked()[1], ["go", "so far", "go on"]);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn a_stop_is_not_answered_by_a_notice() {
    let room = Room::new([Reply::Hang("so far"), says("on")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    inject(agent.agent(), "n1");
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert_eq!(room.asked().len(), 1);
    ask(&agent, "go on").await;
    assert_eq!(room.asked()[1], ["go", "so far", "n1", "go on"]);
}

/// Hears nothing.
struct Deaf {
    entered: Gate,
    dropped: Gate,
}

struct OpenOnDrop(Gate);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[async_trait]
impl Tool for Deaf {
    fn definition(&self) -> ToolDefinition {
        named("deaf")
    }

    async fn call(&self, _: Value, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let _dropped = OpenOnDrop(self.dropped.clone());
        self.entered.open();
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_hears_nothing_is_given_up_in_bounded_time() {
    let room = Room::new([calls(&[("c1", "deaf", ""), ("c2", "deaf", "")])]);
    let (entered, dropped) = (Gate::new(), Gate::new());
    let deaf = Deaf {
        entered: entered.clone(),
        dropped: dropped.clone(),
    };
    room.tools.register(&room.scope, Arc::new(deaf)).unwrap();
    let logs = LogCapture::start();
    let dispose_timeout = Duration::from_millis(700);
    let config = LoopConfig {
        dispose_timeout,
        ..LoopConfig::default()
    };
    let agent = room.agent_with(config).await;
    agent.agent().follow_up(user("go")).unwrap();
    entered.opened().await;
    let begun = Instant::now();
    agent.dispose().await.unwrap();
    assert_eq!(begun.elapsed(), dispose_timeout);
    assert!(dropped.is_open(), "what it had is gone with it");
    let results: Vec<String> = agent
        .agent()
        .session()
        .events()
        .iter()
        .filter_map(|event| match &event.data {
            EventData::ToolResult { content, .. } => Some(text_of(content)),
            _ => None,
        })
        .collect();
    assert_eq!(
        results,
        [
            "Error: tool call aborted: it did not end within 700ms, and was given up",
            "Error: tool call skipped because the step was aborted before execution",
        ]
    );
    assert_eq!(story(agent.agent()).last().unwrap(), "end disposed");
    assert!(logs.contains("gave up on a call of deaf"), "{:?}", logs.lines());
}

#[tokio::test]
async fn core18_disposal_during_a_tool_records_its_result_and_ends_the_turn() {
    let room = Room::new([calls(&[("c1", "slow", "")])]);
    let slow = room.tool("slow", Concurrency::Exclusive);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    slow.entered.opened().await;
    agent.dispose().await.unwrap();
    assert_eq!(
        story(agent.agent())[4..],
        ["assistant", "call c1", "result c1", "/step", "end disposed"]
    );
    assert!(agent.agent().follow_up(user("more")).is_err());
}

#[tokio::test]
async fn disposal_in_the_middle_of_an_answer_ends_the_turn_before_it_returns() {
    let room = Room::new([Reply::Hang("so far")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    agent.dispose().await.unwrap();
    assert_eq!(
        story(agent.agent())[4..],
        ["interrupted", "/step", "end disposed"]
    );
}

#[tokio::test]
async fn the_scope_that_an_agent_lives_in_disposes_it_in_order() {
    let room = Room::new([Reply::Hang("so far")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    room.scope.close().await.unwrap();
    assert_eq!(story(agent.agent()).last().unwrap(), "end disposed");
    assert!(room.agents.get(agent.agent().id()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_the_wait_for_the_next_try() {
    let down = dsh_llm::ModelError {
        retry: dsh_llm::Retry::Later {
            after: Some(std::time::Duration::from_secs(50)),
        },
        ..dsh_llm::ModelError::lasting("RATE_LIMIT", "slow down")
    };
    let room = Room::new([Reply::Fails(down)]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    let before = tokio::time::Instant::now();
    agent.agent().cancel("enough");
    agent.agent().when_idle().await;
    assert!(before.elapsed() < std::time::Duration::from_secs(1));
    assert_eq!(story(agent.agent()).last().unwrap(), "end aborted");
}

#[tokio::test]
async fn core39_a_burst_of_messages_is_answered_one_turn_each() {
    let room = Room::new((0..50).map(|_| says("yes")));
    let agent = room.agent().await;
    for number in 0..50 {
        agent.agent().follow_up(user(&number.to_string())).unwrap();
    }
    agent.agent().when_idle().await;
    eventually("all were asked", || room.asked().len() == 50).await;
    let turns: Vec<String> = story(agent.agent())
        .into_iter()
        .filter(|word| word.starts_with("turn"))
        .collect();
    let expected: Vec<String> = (1..=50).map(|turn| format!("turn {turn}")).collect();
    assert_eq!(turns, expected);
}
