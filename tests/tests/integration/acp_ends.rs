//! How `dsh acp` ends: its exit codes, and that nothing is left.

use std::process::Stdio;

use dsh_testkit::{eventually, process};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tests::{Editor, Room, says, starts};
use tokio::time::{Duration, timeout};

/// Nothing here takes longer, on a busy machine either.
const DEADLINE: Duration = Duration::from_secs(30);

/// An agent that has started a task, whose process id is in `pid`.
async fn at_work(room: &Room) -> Editor {
    let turns = json!([starts("echo $$ > pid; exec sleep 600"), says("It runs.")]);
    let model = room.script("model.json", turns);
    let mut editor = room.editor(&["--model", &model], json!({})).await;
    let opened = editor.opens(room).await;
    let answer = editor.prompts(&opened["sessionId"], "start it").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    editor
}

#[tokio::test]
async fn signals_end_the_tasks_and_are_the_exit_code() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let room = Room::new();
        let mut editor = at_work(&room).await;
        let task = room.pid("pid").await;
        editor.signal(signal);
        assert_eq!(editor.exit_code().await, Some(code));
        assert!(process::is_gone(task));
        room.assert_empty();
    }
}

#[tokio::test]
async fn the_death_of_the_agent_ends_its_tasks() {
    let room = Room::new();
    let mut editor = at_work(&room).await;
    let task = room.pid("pid").await;
    editor.signal(Signal::SIGKILL);
    assert_eq!(editor.exit_code().await, None);
    process::gone(task).await;
}

/// Kills an agent as soon as it shows this id, which the log of its session has to hold then.
async fn killed_when_it_shows(id: &str, turns: Value) {
    let room = Room::new();
    let model = room.script("model.json", turns);
    let mut editor = room.editor(&["--model", &model], json!({})).await;
    let opened = editor.opens(&room).await;
    let session = opened["sessionId"].as_str().expect("an id");
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "start it"}]});
    editor.sends("session/prompt", prompt).await;
    let shown = editor.hears(|message| message.to_string().contains(id)).await;
    editor.signal(Signal::SIGKILL);
    editor.exit_code().await;
    let log = room.home().join("sessions").join(format!("{session}.jsonl"));
    let log = std::fs::read_to_string(log).unwrap_or_default();
    assert!(log.contains(id), "{shown} is not in the log:\n{log}");
    eventually("nothing of it runs", || room.processes().is_empty()).await;
}

#[tokio::test]
async fn an_id_that_was_shown_is_in_the_log_of_an_agent_that_is_killed_at_once() {
    for _ in 0..8 {
        let turns = json!([starts("exec sleep 600"), says("It runs.")]);
        killed_when_it_shows("bash-1", turns).await;
    }
}

#[tokio::test]
async fn a_task_whose_result_waits_for_another_call_is_not_shown_before_it_is_in_the_log() {
    // The child begins what ends the task that the call before it waits for.
    let delegated = json!({"description": "end it", "prompt": "end it", "run_in_background": true});
    let both = json!({"tool_calls": [
        {"name": "task_output", "arguments": {"task_id": "bash-1", "wait": true}},
        {"name": "subagent", "arguments": delegated},
    ]});
    let child = json!({"tool_calls": [
        {"name": "bash", "arguments": {"command": "touch go", "description": "end it"}},
    ]});
    let turns = json!([
        starts("until [ -e go ]; do sleep 0.02; done"),
        both,
        child,
        says("One."),
        says("Two."),
        says("Three."),
    ]);
    killed_when_it_shows("subagent-1", turns).await;
}

#[tokio::test]
async fn an_agent_without_a_model_or_a_home_says_so() {
    for (arguments, homes, told) in [
        (vec!["acp"], vec![], "DEEPSEEK_API_KEY"),
        (
            vec!["acp", "--model", "scripted:nowhere.json"],
            vec![],
            "nowhere.json",
        ),
        (vec!["acp"], vec!["DSH_HOME", "HOME"], "set DSH_HOME"),
    ] {
        let room = Room::new();
        let mut command = room.dsh();
        command.args(&arguments).stdin(Stdio::null());
        for home in homes {
            command.env_remove(home);
        }
        let output = timeout(DEADLINE, command.output())
            .await
            .expect("it ends in time");
        let output = output.expect("dsh starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(told), "{told:?} is missing: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn what_an_editor_sends_is_not_in_the_log_whatever_is_logged() {
    let room = Room::new();
    let model = room.script("model.json", json!([says("never asked")]));
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": "SECRET_TOKEN", "method": "SECRET_TOKEN/x", "params": {}}),
        json!({"jsonrpc": "2.0", "id": "SECRET_TOKEN", "result": {}}),
    ];
    let script = "printf '%s\\n' \"$1\" \"$2\" \"$3\" | RUST_LOG=info \"$0\" acp --model \"$4\"";
    let mut command = room.shell(script);
    command.args(lines.map(|line| line.to_string())).arg(model);
    let output = timeout(DEADLINE, command.output()).await;
    let output = output.expect("it ends in time").expect("dsh starts");
    assert_eq!(output.status.code(), Some(0));
    let answers = String::from_utf8_lossy(&output.stdout);
    assert!(
        answers.contains(r#""id":"SECRET_TOKEN""#),
        "it was heard: {answers}"
    );
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!log.contains("SECRET_TOKEN"), "{log}");
}
