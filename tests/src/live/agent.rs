//! The agent of `dsh run`: one word, and one conversation that uses everything.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::timeout;

use super::{asks_for, assert_says};
use crate::product::Endpoint;
use crate::{Ran, Room, Turn};

/// The word that the agent is to say.
pub const WORD: &str = "tamarind";

/// The longest that a conversation may take: the last command of the second one has its time in it.
const LIMIT: Duration = Duration::from_secs(110);

/// Has it say one word.
///
/// # Panics
///
/// When it says anything else.
pub async fn answers(deepseek: &Endpoint) {
    let room = Room::new();
    let ran = run(&room, deepseek, &asks_for(WORD), "json").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let result = ran.lines().pop().expect("a line");
    assert_eq!(result["status"], "completed", "{result}");
    assert_says(result["result"].as_str().unwrap_or_default(), WORD);
    room.assert_empty();
}

/// Has it look at a task, wait for one, kill one, and be woken by one that takes so many seconds: it has to have ended its
/// turn by then.
///
/// # Panics
///
/// When it does anything else.
pub async fn looks_waits_kills_and_is_woken(deepseek: &Endpoint, seconds: u32) {
    let room = Room::new();
    check(&run(&room, deepseek, &prompt(seconds), "stream-json").await);
    room.assert_empty();
}

async fn run(room: &Room, deepseek: &Endpoint, prompt: &str, format: &str) -> Ran {
    let mut command: Command = room.dsh();
    command
        .args(["run", prompt, "--output-format", format])
        .envs(deepseek.way.iter().map(|(name, value)| (name, value)))
        .env("DEEPSEEK_API_KEY", &deepseek.key);
    if let Some(url) = deepseek.v1() {
        command.args(["--base-url", &url, "--api-key-env", "DEEPSEEK_API_KEY"]);
    }
    if let Some(model) = &deepseek.model {
        command.args(["--model", model]);
    }
    let output = timeout(LIMIT, command.output()).await;
    Ran::from(output.expect("it ends in time").expect("it runs"))
}

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
pub fn to_the_letter() -> Vec<Turn> {
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
