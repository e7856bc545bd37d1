//! Turns: from a message or a notice to rest.

use dsh_agent::WakePolicy;
use dsh_agent_loop::LoopConfig;
use dsh_llm::{Chunk, FinishReason, ModelError};
use dsh_session::{EventData, Session, SessionId, TurnEnd};
use dsh_system_prompt::Section;
use dsh_testkit::{Gate, eventually};
use dsh_tools::Concurrency;

use crate::played::{Reply, Room, ask, calls, inject, says, story, text_chunk, user};

#[tokio::test]
async fn core54_a_message_is_answered_and_everything_is_logged() {
    let room = Room::new([calls(&[("c1", "look", "{}")]), says("it is fine")]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "how is it?").await;
    let expected = [
        "turn 1",
        "user how is it?",
        "step 1",
        "header initial",
        "assistant",
        "call c1",
        "result c1",
        "/step",
        "step 2",
        "assistant",
        "/step",
        "end completed",
    ];
    assert_eq!(story(agent.agent()), expected);
    assert_eq!(room.asked()[1], ["how is it?", "<look>", "c1=look"]);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core48_the_model_gets_name_description_and_parameters_of_tools_and_nothing_else() {
    let room = Room::new([says("hello")]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    let events = agent.agent().session().events();
    let header = events.iter().find_map(|event| match &event.data {
        EventData::RequestHeader { header, .. } => Some(header),
        _ => None,
    });
    let tools = serde_json::to_value(&header.unwrap().tools).unwrap();
    let expected = serde_json::json!([{
        "name": "look",
        "description": "waits, look",
        "parameters": {"type": "object", "properties": {}}
    }]);
    assert_eq!(tools, expected);
}

#[tokio::test]
async fn t83_a_notice_wakes_an_idle_agent() {
    let room = Room::new([says("hello"), says("I see")]);
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    inject(agent.agent(), "bash-1 finished");
    eventually("the notice is told", || room.asked().len() == 2).await;
    agent.agent().when_idle().await;
    assert_eq!(room.asked()[1], ["hi", "hello", "bash-1 finished"]);
    let events = agent.agent().session().events();
    let trigger = serde_json::to_value(&events[7]).unwrap();
    assert_eq!(
        trigger["data"],
        serde_json::json!({"turn": 2, "trigger": "notice"})
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn t84_quiet_waits_for_the_next_message() {
    let room = Room::new([says("hello")]);
    let agent = room
        .agent_with(LoopConfig {
            wake: WakePolicy::Quiet,
            ..LoopConfig::default()
        })
        .await;
    inject(agent.agent(), "n1");
    agent.agent().when_idle().await;
    assert!(room.asked().is_empty(), "it opens no turn");
    ask(&agent, "hi").await;
    assert_eq!(room.asked(), [["n1", "hi"]]);
}

#[tokio::test]
async fn core21_what_comes_during_a_batch_is_told_after_all_its_results_in_order() {
    let room = Room::new([calls(&[("c1", "slow", ""), ("c2", "look", "")]), says("done")]);
    let slow = room.tool("slow", Concurrency::Exclusive);
    room.quick("look");
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    slow.entered.opened().await;
    inject(agent.agent(), "n1");
    inject(agent.agent(), "n2");
    agent.agent().steer(user("hurry")).unwrap();
    slow.gate.open();
    agent.agent().when_idle().await;
    assert_eq!(
        room.asked()[1],
        ["go", "<slow><look>", "c1=slow", "c2=look", "n1", "n2", "hurry"]
    );
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core26_what_comes_during_the_last_answer_gets_one_more_step_of_the_same_turn() {
    let gate = Gate::new();
    let room = Room::new([Reply::Waits(gate.clone(), "one"), says("two")]);
    let agent = room.agent().await;
    agent.agent().follow_up(user("go")).unwrap();
    room.model_is_asked().await;
    // The answer is coming, so these are for a second step.
    inject(agent.agent(), "n1");
    inject(agent.agent(), "n2");
    gate.open();
    agent.agent().when_idle().await;
    let expected = [
        "turn 1",
        "user go",
        "step 1",
        "header initial",
        "assistant",
        "/step",
        "user n1",
        "user n2",
        "step 2",
        "assistant",
        "/step",
        "end completed",
    ];
    assert_eq!(story(agent.agent()), expected);
    assert_eq!(room.asked(), [vec!["go"], vec!["go", "one", "n1", "n2"]]);
    room.check_requests(agent.agent());
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_tried_again_in_a_new_step_and_nothing_of_it_is_kept() {
    let down = || ModelError::passing("SERVER", "down");
    let room = Room::new([Reply::Fails(down()), Reply::Breaks("half", down()), says("hello")]);
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    let expected = [
        "turn 1",
        "user hi",
        "step 1",
        "header initial",
        "/step",
        "step 2",
        "/step",
        "step 3",
        "assistant",
        "/step",
        "end completed",
    ];
    assert_eq!(story(agent.agent()), expected);
    assert_eq!(room.asked()[2], ["hi"]);
    room.check_requests(agent.agent());
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_stays_ends_the_turn_and_not_the_driver() {
    let down = || Reply::Fails(ModelError::passing("SERVER", "down"));
    let lasting = Reply::Fails(ModelError::lasting("AUTH", "wrong key"));
    let room = Room::new([down(), down(), down(), down(), down(), lasting, says("hello")]);
    let agent = room.agent().await;
    ask(&agent, "one").await;
    ask(&agent, "two").await;
    ask(&agent, "three").await;
    let ends: Vec<TurnEnd> = agent
        .agent()
        .session()
        .events()
        .into_iter()
        .filter_map(|event| match event.data {
            EventData::TurnEnd { reason, .. } => Some(reason),
            _ => None,
        })
        .collect();
    let error = |step, message: &str, code: &str| TurnEnd::Error {
        step,
        message: message.to_owned(),
        code: Some(code.to_owned()),
    };
    assert_eq!(
        ends,
        [
            error(5, "down", "SERVER"),
            error(1, "wrong key", "AUTH"),
            TurnEnd::Completed
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_without_saying_so_was_cut() {
    let cut = Reply::Chunks(vec![text_chunk("half an ans")]);
    let room = Room::new([cut, says("hello")]);
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    assert_eq!(room.asked().len(), 2);
    assert_eq!(
        story(agent.agent())
            .iter()
            .filter(|word| *word == "assistant")
            .count(),
        1
    );
}

#[tokio::test]
async fn core49_a_cut_answer_runs_no_calls_and_ends_the_turn() {
    let Reply::Chunks(mut chunks) = calls(&[("c1", "look", "{}")]) else {
        unreachable!()
    };
    chunks.pop();
    chunks.push(Chunk::Finish(FinishReason::MaxTokens));
    let room = Room::new([Reply::Chunks(chunks)]);
    room.quick("look");
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    assert_eq!(
        story(agent.agent())[4..],
        ["assistant", "/step", "end max-tokens"]
    );
}

#[tokio::test]
async fn core55_a_header_is_logged_once_and_again_when_it_changes_or_the_session_is_taken_up() {
    let room = Room::new([says("1"), says("2"), says("3"), says("4")]);
    let agent = room.agent().await;
    ask(&agent, "a").await;
    ask(&agent, "b").await;
    let mut other = agent.model();
    other.model = "m-2".to_owned();
    agent.set_model(other).unwrap();
    ask(&agent, "c").await;
    let headers = |story: Vec<String>| -> Vec<String> {
        story
            .into_iter()
            .filter(|word| word.starts_with("header"))
            .collect()
    };
    assert_eq!(headers(story(agent.agent())), ["header initial", "header change"]);
    let choice = story(agent.agent())
        .into_iter()
        .position(|word| word == "model m-2");
    assert!(choice.is_some(), "{:?}", story(agent.agent()));
    let session = agent.agent().session().clone();
    agent.dispose().await.unwrap();
    let agent = room.agent_of(session, LoopConfig::default()).await;
    ask(&agent, "d").await;
    assert_eq!(
        headers(story(agent.agent())),
        ["header initial", "header change", "header resume"]
    );
    assert_eq!(room.asked()[3], ["a", "1", "b", "2", "c", "3", "d"]);
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core52_a_prompt_that_cannot_be_made_ends_the_turn_only() {
    let room = Room::new([says("hello")]);
    let section = Section::new("s", 0, "{{nonsense}}");
    let effect = room.prompts.section(&room.scope, section).unwrap();
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    assert_eq!(story(agent.agent()), ["turn 1", "user hi", "end error"]);
    effect.dispose().await;
    ask(&agent, "again").await;
    assert_eq!(room.asked(), [["hi", "again"]]);
}

#[tokio::test]
async fn a_provider_without_adapter_ends_the_turn() {
    let room = Room::new([]);
    let agent = room
        .agent_of(Session::new(SessionId::new("s-9"), None), LoopConfig::default())
        .await;
    let mut other = agent.model();
    other.provider = "elsewhere".to_owned();
    agent.set_model(other).unwrap();
    ask(&agent, "hi").await;
    assert_eq!(story(agent.agent()).last().unwrap(), "end error");
}
