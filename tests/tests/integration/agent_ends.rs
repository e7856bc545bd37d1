//! An agent and the ends of its background commands, with a scripted model and real processes.

use dsh_agent_core::Config;
use dsh_session::TurnTrigger;
use dsh_testkit::process;
use expect_test::expect_file;
use serde_json::{Value, json};
use tests::{GATED, Led, Room};

/// A call that starts a command in the background.
fn background(command: &str) -> Value {
    let arguments = json!({"command": command, "description": "work", "run_in_background": true});
    json!({"name": "bash", "arguments": arguments})
}

fn read(id: &str) -> Value {
    json!({"name": "task_output", "arguments": {"task_id": id}})
}

#[tokio::test]
async fn t83_a_command_that_succeeds_while_the_agent_is_idle_wakes_it() {
    let turns = json!([
        {"tool_calls": [background(&format!("{GATED}echo built"))]},
        {"expect": ["started background task bash-1"], "text": "It is being built."},
        {"expect": ["finished [status: completed, exit code: 0]"], "tool_calls": [read("bash-1")]},
        {"expect": ["built\n[status: completed, exit code: 0]"], "text": "It is built."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Build it.").await;
    assert_eq!(
        (led.triggers().len(), led.told().len()),
        (1, 0),
        "it rests, and nothing was told"
    );
    led.room.go();
    led.turns(2).await;
    assert_eq!(led.triggers(), [TurnTrigger::Message, TurnTrigger::Notice]);
    assert_eq!(led.told(), ["bash-1"]);
    assert_eq!(led.agent().inbox().pending(), 0);
    expect_file!["./agent/success_while_idle.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn a_command_that_fails_is_told_with_its_code_and_its_last_words() {
    let turns = json!([
        {"tool_calls": [background(&format!("{GATED}echo no such target >&2; exit 3"))]},
        {"text": "It is being built."},
        {"expect": ["[status: completed, exit code: 3]", "> no such target"], "text": "That failed."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Build it.").await;
    led.room.go();
    led.turns(2).await;
    assert_eq!(led.told(), ["bash-1"]);
    assert_eq!(led.agent().inbox().pending(), 0);
    expect_file!["./agent/failure.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn a_command_that_the_model_kills_is_gone_and_is_no_news() {
    let arguments = json!({"command": "until [ -s pid ]; do sleep 0.02; done", "description": "wait"});
    let turns = json!([
        {"tool_calls": [background("echo $$ > pid; exec sleep 600")]},
        {"tool_calls": [{"name": "bash", "arguments": arguments}]},
        {"tool_calls": [{"name": "task_kill", "arguments": {"task_id": "bash-1", "reason": "not needed"}}]},
        {"expect": ["requested cancellation of task bash-1"],
         "tool_calls": [{"name": "task_output", "arguments": {"task_id": "bash-1", "wait": true}}]},
        {"expect": ["[status: killed, signal: SIGTERM]"], "text": "It is gone."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Start it, then stop it.").await;
    let pid = led.room.pid("pid").await;
    assert!(process::is_gone(pid), "the end was told, so nobody is left");
    assert_eq!(led.told(), Vec::<String>::new());
    assert_eq!((led.triggers().len(), led.agent().inbox().pending()), (1, 0));
    expect_file!["./agent/kill.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn core51_the_prompt_has_the_habits_of_bash_before_those_of_tasks_and_the_persona_before_both() {
    let mut config = Config::default();
    config.agent.persona = "You are a careful engineer.".to_owned();
    let led = Led::new(Room::new(), config, json!([{"text": "Hello."}])).await;
    led.ask("Hello?").await;
    let system = led.system();
    let sections = led.core.context().prompts.sections();
    let place = |name: &str| {
        let section = sections.iter().find(|section| section.name == name);
        let text = section.map(|section| section.text.as_str()).unwrap_or_default();
        let place = system.find(text).filter(|_| !text.is_empty());
        place.expect("the section is in the prompt")
    };
    let persona = system
        .find("You are a careful engineer.")
        .expect("it is told who it is");
    assert!(
        persona < place("tool:bash") && place("tool:bash") < place("tool:tasks"),
        "{system}"
    );
    led.close().await;
}
