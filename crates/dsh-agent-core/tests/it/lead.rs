//! Agents that work on their own, and what their sessions keep from one harness to the next.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_agent_core::{AgentCore, CompletionDelivery, Config, Parts, Provider};
use dsh_agent_loop::LedAgent;
use dsh_llm::{ContentBlock, ModelRegistry, text_of};
use dsh_llm_scripted::ScriptedAdapter;
use dsh_session::{
    EventData, Message, MessageSource, Session, SessionFile, SessionHeader, SessionId, TurnEnd, request_at,
};
use dsh_testkit::eventually;
use dsh_tools::{Approval, Approver, PendingCall};
use serde_json::{Value, json};

/// The services, with a model that says `turns`.
fn core(mut config: Config, turns: Value) -> AgentCore {
    let script = json!({ "turns": turns }).to_string();
    let adapter = ScriptedAdapter::from_json("test", &script).unwrap();
    config.model.provider = Provider::Scripted;
    config.model.name = Some("test".to_owned());
    let mut models = ModelRegistry::new();
    models.register("scripted", Arc::new(adapter)).unwrap();
    let parts = Parts {
        models,
        ..Parts::default()
    };
    AgentCore::assemble_with(config, parts).unwrap()
}

fn session() -> Session {
    Session::new(SessionId::new("s-1"), std::env::current_dir().ok())
}

async fn ask(led: &LedAgent, text: &str) {
    let message = Message {
        content: vec![ContentBlock::text(text)],
        source: MessageSource::User,
    };
    led.agent().follow_up(message).unwrap();
    led.agent().when_idle().await;
}

fn bash(command: &str) -> Value {
    let arguments = json!({"command": command, "description": "test"});
    json!({"tool_calls": [{"name": "bash", "arguments": arguments}]})
}

fn background(command: &str) -> Value {
    let arguments = json!({"command": command, "description": "test", "run_in_background": true});
    json!({"tool_calls": [{"name": "bash", "arguments": arguments}]})
}

/// What the model was told by notices, in order.
fn notices(session: &Session) -> Vec<String> {
    let told = |data: &EventData| match data {
        EventData::UserMessage(message) if message.source != MessageSource::User => {
            Some(text_of(&message.content))
        }
        _ => None,
    };
    session
        .events()
        .iter()
        .filter_map(|event| told(&event.data))
        .collect()
}

fn last_result(session: &Session) -> String {
    let result = |data: &EventData| match data {
        EventData::ToolResult { content, .. } => Some(text_of(content)),
        _ => None,
    };
    let events = session.events();
    events.iter().rev().find_map(|event| result(&event.data)).unwrap()
}

#[tokio::test]
async fn an_agent_knows_who_and_where_it_is() {
    let mut config = Config::default();
    config.agent.persona = "You like {{model}} in {{cwd}}.".to_owned();
    config.agent.tool_order = vec![
        "task_list".to_owned(),
        "<unlisted-tools>".to_owned(),
        "bash".to_owned(),
    ];
    config.model.temperature = Some(0.25);
    let core = core(config, json!([{"text": "Hello."}]));
    let session = session();
    let led = core.context().lead(session.clone(), None).await.unwrap();
    ask(&led, "hi").await;
    let events = session.events();
    let step = events
        .iter()
        .find(|event| matches!(event.data, EventData::StepStart { .. }))
        .unwrap();
    let request = request_at(&events, step.seq).unwrap();
    let system = request.header.system;
    let cwd = std::env::current_dir().unwrap().display().to_string();
    let persona = format!("You like test in {cwd}.");
    assert!(system.starts_with("You are dsh, "), "{system}");
    assert!(
        system.contains(&format!("You work in {cwd}.\n\n{persona}\n\n")),
        "{system}"
    );
    let tools: Vec<_> = request
        .header
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let expected = [
        "task_list",
        "subagent",
        "subagent_fork",
        "task_kill",
        "task_output",
        "bash",
    ];
    assert_eq!(tools, expected);
    assert_eq!(request.header.sampling.temperature, Some(0.25));
    // An MCP client has an agent of its own: it is not told to be another.
    let shared = core.context().prompts.assemble().unwrap();
    assert!(
        !shared.contains("You are dsh") && !shared.contains("You like"),
        "{shared}"
    );
    core.shutdown().await;
}

#[tokio::test]
async fn tasks_of_an_earlier_harness_are_told_with_the_first_turn_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s-1"), None);
    let first = Session::persisted(SessionFile::create(&path, header).unwrap());
    let harness = core(
        Config::default(),
        json!([background("sleep 600"), {"text": "It runs."}]),
    );
    let led = harness.context().lead(first.clone(), None).await.unwrap();
    ask(&led, "serve").await;
    harness.shutdown().await;
    assert_eq!(notices(&first), Vec::<String>::new(), "an orderly end is no news");
    drop((led, harness, first));

    // Each of these loses the task of the one before.
    for next in ["bash-2", "bash-3"] {
        let second = Session::persisted(SessionFile::open(&path).unwrap());
        let harness = core(
            Config::default(),
            json!([background("sleep 600"), {"text": "So it is."}]),
        );
        let led = harness.context().lead(second.clone(), None).await.unwrap();
        assert_eq!(led.agent().inbox().pending(), 1, "before anything is asked");
        led.agent().when_idle().await;
        let before = notices(&second).len();
        ask(&led, "and now?").await;
        assert_eq!(notices(&second).len() - before, 1);
        assert!(last_result(&second).contains(next), "{}", last_result(&second));
        harness.shutdown().await;
    }
}

#[tokio::test]
async fn notices_that_nobody_took_are_kept_for_the_next_harness() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s-1"), None);
    let first = Session::persisted(SessionFile::create(&path, header).unwrap());
    let mut config = Config::default();
    config.tool_tasks.completion_delivery = CompletionDelivery::Quiet;
    let harness = core(config, json!([background("exit 3"), {"text": "It runs."}]));
    let led = harness.context().lead(first.clone(), None).await.unwrap();
    ask(&led, "build").await;
    eventually("the end is told to the inbox", || {
        led.agent().inbox().pending() + notices(&first).len() == 1
    })
    .await;
    harness.shutdown().await;
    drop((led, harness, first));

    let second = Session::persisted(SessionFile::open(&path).unwrap());
    let told = notices(&second);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("finished [status: completed, exit code: 3]"),
        "{told:?}"
    );
    let harness = core(
        Config::default(),
        json!([
            {
                "expect": ["finished [status: completed, exit code: 3]", "and now?"],
                "tool_calls": [{"name": "task_output", "arguments": {"task_id": "bash-1"}}],
            },
            {"text": "So it is."},
        ]),
    );
    let led = harness.context().lead(second.clone(), None).await.unwrap();
    assert_eq!(led.agent().inbox().pending(), 0, "the log tells it");
    ask(&led, "and now?").await;
    assert_eq!(
        last_result(&second),
        "(no new output)\n[status: completed, exit code: 3]"
    );
    assert_eq!(notices(&second).len(), 1);
    harness.shutdown().await;
}

#[tokio::test]
async fn messages_that_nobody_took_are_kept_for_the_next_harness() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let header = SessionHeader::new(SessionId::new("s-1"), None);
    let first = Session::persisted(SessionFile::create(&path, header).unwrap());
    let harness = core(Config::default(), json!([{"text": "I begin", "hang": true}]));
    let led = harness.context().lead(first.clone(), None).await.unwrap();
    let mut live = led.live();
    let say = |text: &str| Message {
        content: vec![ContentBlock::text(text)],
        source: MessageSource::User,
    };
    led.agent().follow_up(say("build")).unwrap();
    live.recv().await.unwrap();
    led.agent().follow_up(say("then test")).unwrap();
    led.agent().steer(say("in release")).unwrap();
    harness.shutdown().await;
    drop((led, harness, first, live));

    let second = Session::persisted(SessionFile::open(&path).unwrap());
    let expect = ["in release", "then test", "and now?"];
    let harness = core(
        Config::default(),
        json!([{"expect": expect, "text": "All of it."}]),
    );
    let led = harness.context().lead(second.clone(), None).await.unwrap();
    ask(&led, "and now?").await;
    let end = second.events().pop().map(|event| event.data);
    let reason = TurnEnd::Completed;
    assert_eq!(end, Some(EventData::TurnEnd { turn: 3, reason }));
    harness.shutdown().await;
}

#[tokio::test]
async fn what_a_foreground_command_left_running_is_a_task_of_the_session_too() {
    let first = session();
    let harness = core(
        Config::default(),
        json!([bash("sleep 600 & echo started"), {"text": "It runs."}]),
    );
    let led = harness.context().lead(first.clone(), None).await.unwrap();
    ask(&led, "serve").await;
    let value = first.events().into_iter().find_map(|event| match event.data {
        EventData::ToolResult { value, .. } => value,
        _ => None,
    });
    harness.shutdown().await;
    // Without a guard what leaves the group cannot be seen, but a background job in it can.
    let Some(id) = value.as_ref().and_then(|value| value["taskId"].as_str()) else {
        panic!("no task is named: {value:?}")
    };
    let log = first.events();
    drop((led, harness));
    let again = session();
    for event in log {
        again.append(event.data).unwrap();
    }
    let harness = core(Config::default(), json!([]));
    let led = harness.context().lead(again, None).await.unwrap();
    let list = harness.context().tasks.list(Some(led.agent()));
    let list: Vec<String> = list.iter().map(|task| task.list_line()).collect();
    assert_eq!(list, [format!("{id} [bash] failed — sleep 600 & echo started")]);
    harness.shutdown().await;
}

/// Answers all questions alike, and counts them.
struct Answers(Approval, std::sync::atomic::AtomicUsize);

#[async_trait]
impl Approver for Answers {
    async fn ask(&self, _: &PendingCall) -> Approval {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0
    }
}

#[tokio::test]
async fn only_what_is_configured_is_asked_for() {
    for (ask_for, answer, asked, ran) in [
        (vec![], Approval::Denied, 0, true),
        (vec!["bash".to_owned()], Approval::Denied, 1, false),
        (vec!["bash".to_owned()], Approval::Allowed, 1, true),
        (vec!["task_list".to_owned()], Approval::Denied, 0, true),
    ] {
        let mut config = Config::default();
        config.approval.ask = ask_for;
        let core = core(config, json!([bash("echo it ran"), {"text": "Over."}]));
        let answers = Arc::new(Answers(answer, Default::default()));
        let session = session();
        let led = core
            .context()
            .lead(session.clone(), Some(answers.clone()))
            .await
            .unwrap();
        ask(&led, "run it").await;
        assert_eq!(answers.1.load(std::sync::atomic::Ordering::Relaxed), asked);
        assert_eq!(
            last_result(&session).contains("it ran"),
            ran,
            "{}",
            last_result(&session)
        );
        core.shutdown().await;
    }
}
