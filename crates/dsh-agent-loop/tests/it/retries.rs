//! Requests that failed and are sent again.

use std::time::Duration;

use dsh_agent_loop::Live;
use dsh_llm::{Chunk, FinishReason, ModelError, Retry, Usage};
use dsh_session::EventData;

use crate::played::{Reply, Room, ask, inject, says, story, text_chunk, user};

fn slow_down(seconds: u64) -> Reply {
    Reply::Fails(ModelError {
        retry: Retry::Later {
            after: Some(Duration::from_secs(seconds)),
        },
        ..ModelError::lasting("RATE_LIMIT", "slow down")
    })
}

#[tokio::test(start_paused = true)]
async fn a_retry_can_be_seen_with_its_reason_and_its_wait() {
    let room = Room::new([slow_down(50), says("hello")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    ask(&agent, "hi").await;
    let retry = Live::Retry {
        turn: 1,
        step: 1,
        message: "slow down".to_owned(),
        after: Duration::from_secs(50),
    };
    assert_eq!(live.recv().await.unwrap(), retry);
    let text = Live::Text {
        turn: 1,
        step: 2,
        text: "hello".to_owned(),
    };
    assert_eq!(
        live.recv().await.unwrap(),
        text,
        "the answer is that of the next step"
    );
}

#[tokio::test(start_paused = true)]
async fn what_comes_during_the_wait_for_another_try_is_told_with_it() {
    let room = Room::new([slow_down(50), says("hello"), says("now")]);
    let agent = room.agent().await;
    let mut live = agent.live();
    agent.agent().follow_up(user("go")).unwrap();
    live.recv().await.unwrap();
    agent.agent().steer(user("hurry")).unwrap();
    agent.agent().follow_up(user("later")).unwrap();
    inject(agent.agent(), "n1");
    agent.agent().when_idle().await;
    assert_eq!(room.asked()[1], ["go", "n1", "hurry"]);
    let expected = ["/step", "user n1", "user hurry", "step 2", "assistant"];
    assert_eq!(story(agent.agent())[4..9], expected);
    assert_eq!(room.asked()[2], ["go", "n1", "hurry", "hello", "later"]);
    room.check_requests(agent.agent());
}

/// What a provider asks for is not counted: five tries of a minute each are within sixty seconds.
#[tokio::test(start_paused = true)]
async fn time_that_the_provider_asked_to_wait_uses_up_no_time() {
    let room = Room::new([
        slow_down(60),
        slow_down(60),
        slow_down(60),
        slow_down(60),
        says("hello"),
    ]);
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    assert_eq!(room.asked().len(), 5);
    assert_eq!(story(agent.agent()).last().unwrap(), "end completed");
    room.check_requests(agent.agent());
}

#[tokio::test(start_paused = true)]
async fn steps_are_numbered_through_a_turn_and_anew_in_the_next() {
    let down = || Reply::Fails(ModelError::passing("SERVER", "down"));
    let room = Room::new([down(), says("one"), says("two")]);
    let agent = room.agent().await;
    ask(&agent, "a").await;
    ask(&agent, "b").await;
    let steps: Vec<(u64, u64)> = agent
        .agent()
        .session()
        .events()
        .iter()
        .filter_map(|event| match event.data {
            EventData::StepStart { turn, step } => Some((turn, step)),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [(1, 1), (1, 2), (2, 1)]);
}

#[tokio::test(start_paused = true)]
async fn each_answer_is_logged_with_what_it_cost_and_a_failed_one_is_not() {
    let usage = |output_tokens| Usage {
        input_tokens: 10,
        cache_read_tokens: 1,
        output_tokens,
    };
    let answer = |end: Option<FinishReason>, tokens| {
        let mut chunks = vec![text_chunk("x"), Chunk::Usage(usage(tokens))];
        chunks.extend(end.map(Chunk::Finish));
        Reply::Chunks(chunks)
    };
    let stop = Some(FinishReason::Stop);
    let room = Room::new([answer(None, 100), answer(stop.clone(), 2), answer(stop, 3)]);
    let agent = room.agent().await;
    ask(&agent, "a").await;
    ask(&agent, "b").await;
    let mut sum = Usage::default();
    for event in agent.agent().session().events() {
        if let EventData::AssistantMessage { usage, .. } = event.data {
            sum += usage.unwrap();
        }
    }
    let expected = Usage {
        input_tokens: 20,
        cache_read_tokens: 2,
        output_tokens: 5,
    };
    assert_eq!(sum, expected);
}
