//! One conversation that uses everything: with a model that does as it is told, and, where a person wants to pay for it
//! (`DSH_LIVE=1` and `DEEPSEEK_API_KEY`), with a real one.

use std::time::Duration;

use serde_json::{Value, json};
use tests::{ModelServer, Ran, Room, Turn, Wire};
use tokio::time::timeout;

/// The last command takes so many seconds: the model has to have ended its turn by then.
fn prompt(seconds: u32) -> String {
    format!("{PROMPT} The commands of step 3 are `sleep {seconds}; echo late`.")
}

const PROMPT: &str = "This is a test of your background tasks. Use only your tools, exactly in this order. \
    1. Run `for i in 1 2 3; do echo tick $i; sleep 1; done` with run_in_background. Look at it once with task_output \
    without wait, then read it with task_output and wait: true, again if need be, until its status is completed. \
    2. Run `sleep 600` with run_in_background, stop it with task_kill, and read it with task_output and wait: true. \
    3. Run the commands of step 3 with run_in_background and then end your turn at once, without any further tool call: \
    you will be told when it has ended. Only after you were told, read it with task_output and answer with ALL DONE.";

fn shell(command: &str) -> Turn {
    let arguments = json!({"command": command, "description": "Test", "run_in_background": true});
    Turn::Call("bash".to_owned(), arguments)
}

fn task(tool: &str, mut arguments: Value, id: &str) -> Turn {
    arguments["task_id"] = json!(id);
    Turn::Call(tool.to_owned(), arguments)
}

/// What the prompt asks for, done to the letter.
fn to_the_letter() -> Vec<Turn> {
    let wait = || json!({"wait": true});
    vec![
        shell("for i in 1 2 3; do echo tick $i; sleep 1; done"),
        task("task_output", json!({}), "bash-1"),
        task("task_output", wait(), "bash-1"),
        shell("sleep 600"),
        task("task_kill", json!({}), "bash-2"),
        task("task_output", wait(), "bash-2"),
        shell("sleep 1; echo late"),
        Turn::text("I wait to be told."),
        task("task_output", json!({}), "bash-3"),
        Turn::text("ALL DONE"),
    ]
}

/// The facts, whoever has answered.
fn check(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let calls = ran.of_type("tool_call");
    let called = |name: &str, wait: bool| {
        let mut calls = calls.iter();
        calls.any(|call| call["name"] == name && (call["arguments"]["wait"] == true) == wait)
    };
    assert!(called("task_output", false), "it looked: {ran:?}");
    assert!(called("task_output", true), "it waited: {ran:?}");
    assert!(called("task_kill", false), "it killed: {ran:?}");
    let result = ran.lines().pop().expect("a line");
    let tasks = result["tasks"].as_array().expect("tasks").iter();
    let ends: Vec<_> = tasks
        .map(|task| (task["status"].as_str(), task["detail"].as_str()))
        .collect();
    let completed = (Some("completed"), Some("exit code: 0"));
    assert_eq!(
        ends,
        [completed, (Some("killed"), Some("signal: SIGTERM")), completed],
        "{ran:?}"
    );
    let [notice] = ran
        .of_type("notice")
        .try_into()
        .expect("one notice: the other ends were waited for");
    assert_eq!(notice["tasks"], json!(["bash-3"]));
    assert!(notice["turn"].as_u64() > Some(1), "it woke the agent: {notice}");
    assert!(
        result["result"]
            .as_str()
            .is_some_and(|said| said.contains("ALL DONE")),
        "{result}"
    );
}

#[tokio::test]
async fn a_model_that_does_as_it_is_told_looks_waits_kills_and_is_woken() {
    let room = Room::new();
    let server = ModelServer::start(Wire::Chat, to_the_letter()).await;
    let url = format!("{}/v1", server.url());
    check(
        &room
            .run(&[&prompt(1), "--base-url", &url, "--output-format", "stream-json"])
            .await,
    );
    room.assert_empty();
}

#[tokio::test]
async fn live_a_real_model_looks_waits_kills_and_is_woken() {
    let (Some(_), Some(key)) = (std::env::var_os("DSH_LIVE"), std::env::var_os("DEEPSEEK_API_KEY")) else {
        return;
    };
    let room = Room::new();
    let mut command = room.dsh();
    command
        .args(["run", &prompt(25), "--output-format", "stream-json"])
        .env("DEEPSEEK_API_KEY", key);
    let output = timeout(Duration::from_secs(110), command.output()).await;
    check(&Ran::from(output.expect("it ends in time").expect("it runs")));
    room.assert_empty();
}
