//! An agent that is stopped, disposed or refused while it has background commands, with a scripted model and real
//! processes.

use dsh_agent_core::Config;
use dsh_session::{TurnEnd, TurnTrigger};
use dsh_testkit::process;
use expect_test::expect_file;
use serde_json::{Value, json};
use tests::{GATED, Led, Room};

fn background(command: &str) -> Value {
    let arguments = json!({"command": command, "description": "work", "run_in_background": true});
    json!({"name": "bash", "arguments": arguments})
}

#[tokio::test]
async fn a_stop_during_a_wait_leaves_the_task_alone_and_its_end_is_told_later_once() {
    let wait = json!({"task_id": "bash-1", "wait": true, "timeout_ms": 60000});
    let turns = json!([
        {"tool_calls": [background(&format!("{GATED}echo built"))]},
        {"tool_calls": [{"name": "task_output", "arguments": wait}]},
        {"expect": ["Error: tool call aborted", "background task bash-1"], "text": "It is built, I see."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.say("Build it and wait.");
    led.called("call-2").await;
    led.agent().cancel("the user pressed stop");
    led.turns(1).await;
    let reason = "the user pressed stop".to_owned();
    assert_eq!(led.ends(), [TurnEnd::Aborted { reason }]);
    assert_eq!(led.result("call-2"), "Error: tool call aborted");
    assert_eq!((led.told().len(), led.agent().inbox().pending()), (0, 0));
    led.room.go();
    led.turns(2).await;
    assert_eq!(led.triggers(), [TurnTrigger::Message, TurnTrigger::Notice]);
    assert_eq!(led.told(), ["bash-1"]);
    assert_eq!(led.agent().inbox().pending(), 0);
    expect_file!["./agent/stopped_wait.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn a_stop_during_a_foreground_command_ends_it_and_no_task() {
    let sleep = json!({"command": "echo $$ > front; exec sleep 600", "description": "sleep"});
    let turns = json!([
        {"tool_calls": [background("echo $$ > back; exec sleep 600")]},
        {"tool_calls": [{"name": "bash", "arguments": sleep}]},
        {"expect": ["Error: tool call aborted", "Still there?"], "text": "The task is."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.say("Sleep.");
    let (front, back) = (led.room.pid("front").await, led.room.pid("back").await);
    led.agent().cancel("enough");
    led.turns(1).await;
    assert!(process::is_gone(front), "the call was awaited");
    assert!(!process::is_gone(back), "a stop concerns the turn");
    led.ask("Still there?").await;
    expect_file!["./agent/stopped_command.txt"].assert_eq(&led.page());
    led.close().await;
    assert!(process::is_gone(back));
}

#[tokio::test]
async fn t87_a_disposed_agent_leaves_nothing_running_and_is_told_nothing() {
    let turns = json!([
        {"tool_calls": [
            background("echo $$ > one; exec sleep 600"),
            background("trap '' TERM; echo $$ > two; while :; do sleep 1; done")
        ]},
        {"text": "They run."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Start them.").await;
    let (one, two) = (led.room.pid("one").await, led.room.pid("two").await);
    led.agent.dispose().await.expect("the agent goes");
    assert!(process::is_gone(one) && process::is_gone(two));
    assert_eq!((led.ends().len(), led.requests(), led.told().len()), (1, 2, 0));
    assert_eq!(led.agent().inbox().pending(), 0);
    assert!(!led.core.context().agents.is_registered(led.agent()));
    expect_file!["./agent/disposal.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn core18_an_agent_that_is_disposed_in_the_middle_of_a_command_records_its_result() {
    let sleep = json!({"command": "echo $$ > pid; exec sleep 600", "description": "sleep"});
    let turns = json!([{"tool_calls": [{"name": "bash", "arguments": sleep}]}]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.say("Sleep.");
    let pid = led.room.pid("pid").await;
    led.agent.dispose().await.expect("the agent goes");
    assert!(process::is_gone(pid));
    assert_eq!(led.ends(), [TurnEnd::Disposed]);
    assert_eq!(led.result("call-1"), "Error: tool call aborted");
    expect_file!["./agent/disposal_in_a_command.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn t09_a_start_beyond_the_limit_is_refused_and_names_what_runs() {
    let mut config = Config::default();
    config.tasks.max_concurrent_tasks_per_owner = 1;
    let refusal = "Error: background task limit reached for this owner (limit: 1); use task_kill to stop an \
                   unneeded task, wait for it to finish, then retry (running: bash-1 for ";
    let turns = json!([
        {"tool_calls": [background(&format!("{GATED}echo one"))]},
        {"tool_calls": [background("touch must-not-run")]},
        {"expect": [refusal], "text": "One at a time, then."},
        {"expect": ["background task bash-1"], "tool_calls": [background("echo two > two")]},
        {"expect": ["started background task bash-2"],
         "tool_calls": [{"name": "task_output", "arguments": {"task_id": "bash-2", "wait": true}}]},
        {"expect": ["[status: completed, exit code: 0]"], "text": "Both are done."}
    ]);
    let led = Led::new(Room::new(), config, turns).await;
    led.ask("Do both.").await;
    assert!(led.result("call-2").starts_with(refusal));
    assert!(!led.room.file("must-not-run").exists());
    led.room.go();
    led.turns(2).await;
    assert!(led.room.file("two").exists());
    assert_eq!(led.told(), ["bash-1"]);
    expect_file!["./agent/refused_start.txt"].assert_eq(&led.page());
    led.close().await;
}
