//! Who delegates, and who works for it.

use dsh_agent_core::Config;
use dsh_llm::{ModelMessage, ModelRequest, text_of};
use dsh_session::{EventData, SessionId, TurnEnd};
use dsh_subagent::SubagentEvent;
use dsh_testkit::process::is_gone;
use serde_json::json;
use std::sync::{Arc, Mutex};

use super::family::{Family, delegates, runs, says};

fn users(request: &ModelRequest) -> Vec<String> {
    let messages = request.messages.iter();
    let said = messages.filter_map(|message| match message {
        ModelMessage::User { content } => Some(text_of(content)),
        _ => None,
    });
    said.collect()
}

#[tokio::test]
async fn s110_s113_s115_a_fresh_child_answers_and_knows_its_task_alone() {
    let family = Family::new(&[
        (
            "lead",
            json!([delegates("subagent", "What is it?"), {"expect": ["From the child."], "text": "So it is."}]),
        ),
        ("spawn", json!([runs("pwd"), says("From the child.")])),
    ])
    .await;
    family.ask("Find out what it is.").await;
    assert_eq!(family.result("call-1"), "From the child.");
    assert_eq!(family.ends(), [TurnEnd::Completed]);
    let asked = family.requests("spawn");
    assert_eq!(users(&asked[0]), ["What is it?"]);
    let directory = format!("{:?}", asked[1].messages);
    assert!(
        directory.contains(&*family.room.work().to_string_lossy()),
        "it works where its parent does: {directory}"
    );
    family.close().await;
}

#[tokio::test]
async fn s150_one_parent_has_one_of_each_then_goes_on() {
    let family = Family::new(&[
        (
            "lead",
            json!([
                says("I know a secret: 42."),
                delegates("subagent", "Ask nobody."),
                delegates("subagent_fork", "What is the secret?"),
                {"expect": ["It is 42."], "text": "Both have said something."}
            ]),
        ),
        ("spawn", json!([says("I know nothing.")])),
        ("fork", json!([says("It is 42.")])),
    ])
    .await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::clone(&seen);
    let listener = move |event: &SubagentEvent| {
        if let SubagentEvent::Started(run) = event {
            runs.lock()
                .expect("no panic")
                .push((run.provider.clone(), run.id.clone(), run.parent.clone()));
        }
        Ok(())
    };
    let context = family.context();
    drop(
        context
            .subagents
            .observe(&context.scope, Arc::new(listener))
            .expect("an observer"),
    );
    family.ask("Keep this.").await;
    family.ask("Now ask them.").await;
    let results = [family.result("call-1"), family.result("call-2")];
    assert_eq!(results, ["I know nothing.", "It is 42."]);
    assert_eq!(family.ends(), [TurnEnd::Completed, TurnEnd::Completed]);

    let seen = seen.lock().expect("no panic").clone();
    let providers: Vec<&str> = seen.iter().map(|(provider, ..)| provider.as_str()).collect();
    assert_eq!(providers, ["spawn", "fork"]);
    assert_ne!(seen[0].1, seen[1].1);
    assert!(
        seen.iter()
            .all(|(_, _, parent)| *parent == SessionId::new("lead"))
    );

    assert_eq!(users(&family.requests("spawn")[0]), ["Ask nobody."]);
    // The turn that it was asked in is not its own.
    let fork = &family.requests("fork")[0];
    assert_eq!(users(fork), ["Keep this.", "What is the secret?"]);

    let events = family.lead().session().events();
    let turns = events
        .iter()
        .filter(|event| matches!(event.data, EventData::TurnStart { .. }));
    assert_eq!(turns.count(), 2, "the parent's log has its own turns alone");
    family.close().await;
}

#[tokio::test]
async fn s117_s118_what_becomes_of_a_child_is_what_its_parent_reads() {
    let family = Family::new(&[
        (
            "lead",
            json!([
                delegates("subagent", "Say much."),
                delegates("subagent", "Fail."),
                says("I see.")
            ]),
        ),
        (
            "spawn",
            json!([
                {"text": "As far as it", "finish": "max-tokens"},
                {"text": "Half.", "error": {"message": "the model is on holiday"}}
            ]),
        ),
    ])
    .await;
    family.ask("Go.").await;
    assert_eq!(
        family.result("call-1"),
        "Error: subagent run hit its token limit before finishing\nPartial output before the run ended:\nAs far as it"
    );
    assert_eq!(
        family.result("call-2"),
        "Error: subagent run failed\nDiagnostic: the model is on holiday"
    );
    family.close().await;
}

#[tokio::test]
async fn children_of_children_end_at_the_limit_and_the_tool_stays() {
    let family = Family::new(&[
        (
            "lead",
            json!([delegates("subagent", "1"), {"expect": ["first"], "text": "Done."}]),
        ),
        (
            "spawn",
            json!([
                delegates("subagent", "2"),
                delegates("subagent", "3"),
                delegates("subagent", "4"),
                {"expect": ["Error: subagent depth 4 exceeds max_depth 3"], "text": "third"},
                {"expect": ["third"], "text": "second"},
                {"expect": ["second"], "text": "first"}
            ]),
        ),
    ])
    .await;
    family.ask("Go deep.").await;
    assert_eq!(family.result("call-1"), "first");
    let asked = family.requests("spawn");
    assert_eq!(asked.len(), 6);
    for request in asked {
        let tools: Vec<&str> = request
            .header
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        assert!(tools.contains(&"subagent"), "{tools:?}");
    }
    family.close().await;
}

#[tokio::test]
async fn a_cancelled_turn_cancels_the_child_in_it() {
    let family = Family::new(&[
        (
            "lead",
            json!([delegates("subagent", "Work."), says("never asked")]),
        ),
        (
            "spawn",
            json!([
                runs("setsid sleep 600 & echo $! > stray; echo $$ > pid; sleep 600"),
                says("never asked")
            ]),
        ),
    ])
    .await;
    family.say("Go.");
    let (command, stray) = (family.room.pid("pid").await, family.room.pid("stray").await);
    family.lead().cancel("enough");
    family.lead().when_idle().await;
    let reason = "enough".to_owned();
    assert_eq!(family.ends(), [TurnEnd::Aborted { reason }]);
    assert!(is_gone(command) && is_gone(stray), "the call was awaited");
    assert_eq!(family.requests("spawn").len(), 1);
    assert_eq!(family.context().tasks.list(Some(family.lead())), []);
    family.abandon().await;
}

#[tokio::test]
async fn a_child_asks_nobody() {
    let mut config = Config::default();
    config.approval.ask = vec!["bash".to_owned()];
    let family = Family::configured(
        config,
        &[
            (
                "lead",
                json!([
                    runs("touch allowed"),
                    delegates("subagent", "Touch it."),
                    says("I see.")
                ]),
            ),
            (
                "spawn",
                json!([runs("touch denied"), {"expect": ["Error"], "text": "I may not."}]),
            ),
        ],
    )
    .await;
    family.ask("Go.").await;
    assert_eq!(family.result("call-2"), "I may not.");
    let room = family.close().await;
    assert!(room.file("allowed").exists(), "somebody answers for who leads");
    assert!(!room.file("denied").exists(), "nobody answers for the child");
}
