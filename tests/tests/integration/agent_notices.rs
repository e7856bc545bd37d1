//! When an agent is told of the ends of its background commands, with a scripted model and real processes.

use dsh_agent_core::{CompletionDelivery, Config};
use dsh_session::TurnTrigger;
use dsh_testkit::process;
use expect_test::expect_file;
use serde_json::{Value, json};
use tests::{Led, Room};

/// A call that starts a command in the background, which ends when `file` is there.
fn until(file: &str) -> Value {
    let command = format!("until [ -e {file} ]; do sleep 0.02; done");
    let arguments = json!({"command": command, "description": "work", "run_in_background": true});
    json!({"name": "bash", "arguments": arguments})
}

/// A call that makes `file`.
fn make(file: &str) -> Value {
    json!({"name": "bash", "arguments": {"command": format!("touch {file}"), "description": "go on"}})
}

/// A call that returns when so many notices wait.
fn waiting(count: u64) -> Value {
    json!({"name": "await_notices", "arguments": {"count": count}})
}

fn make_file(led: &Led, name: &str) {
    std::fs::write(led.room.file(name), "").expect("a file");
}

#[tokio::test]
async fn what_ends_while_the_model_answers_is_told_in_the_next_step_of_the_turn() {
    let room = Room::new();
    let told = room.file("told");
    let turns = json!([
        {"tool_calls": [until("go")]},
        {"wait_for_file": told, "text": "It is being done."},
        {"expect": ["background task bash-1"], "text": "It is done."}
    ]);
    let led = Led::new(room, Config::default(), turns).await;
    led.say("Do it.");
    led.asked(2).await;
    led.room.go();
    led.pending(1).await;
    make_file(&led, "told");
    led.turns(1).await;
    assert_eq!(led.triggers(), [TurnTrigger::Message], "no turn of its own");
    assert_eq!((led.told(), led.requests()), (vec!["bash-1".to_owned()], 3));
    expect_file!["./agent/while_busy.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn what_ends_during_a_batch_is_told_after_all_its_results() {
    let turns = json!([
        {"tool_calls": [until("go")]},
        {"tool_calls": [make("go"), waiting(1), make("more")]},
        {"expect": ["1 waiting", "background task bash-1"], "text": "It is done."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Do it.").await;
    assert_eq!(led.told(), ["bash-1"]);
    assert_eq!((led.triggers().len(), led.requests()), (1, 3));
    expect_file!["./agent/during_a_batch.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn several_ends_are_told_together_in_the_order_in_which_they_came() {
    let turns = json!([
        {"tool_calls": [until("one"), until("two"), until("three")]},
        {"tool_calls": [make("two"), waiting(1), make("three"), waiting(2), make("one"), waiting(3)]},
        {"expect": ["bash-1", "bash-2", "bash-3"], "text": "All is done."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Do it.").await;
    assert_eq!(led.told(), ["bash-2", "bash-3", "bash-1"]);
    assert_eq!((led.triggers().len(), led.requests()), (1, 3));
    expect_file!["./agent/several.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn a_notice_that_waits_is_taken_back_when_the_end_is_read() {
    let turns = json!([
        {"tool_calls": [until("go")]},
        {"tool_calls": [make("go"), waiting(1), {"name": "task_output", "arguments": {"task_id": "bash-1"}}]},
        {"expect": ["[status: completed, exit code: 0]"], "text": "It is done."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Do it.").await;
    assert_eq!(led.told(), Vec::<String>::new(), "the result has told it");
    assert_eq!((led.agent().inbox().pending(), led.triggers().len()), (0, 1));
    expect_file!["./agent/taken_back.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn t84_where_notices_are_quiet_they_wait_for_a_person() {
    let mut config = Config::default();
    config.tool_tasks.completion_delivery = CompletionDelivery::Quiet;
    let turns = json!([
        {"tool_calls": [until("go")]},
        {"text": "It is being done."},
        {"expect": ["background task bash-1", "And?"], "text": "It is done."}
    ]);
    let led = Led::new(Room::new(), config, turns).await;
    led.ask("Do it.").await;
    led.room.go();
    led.pending(1).await;
    led.agent().when_idle().await;
    assert_eq!((led.triggers().len(), led.requests()), (1, 2), "nobody was woken");
    led.ask("And?").await;
    assert_eq!(led.triggers(), [TurnTrigger::Message; 2]);
    assert_eq!(led.told(), ["bash-1"]);
    expect_file!["./agent/quiet.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn t85_t86_an_agent_is_woken_so_often_and_again_after_a_person_spoke() {
    let mut config = Config::default();
    config.tool_tasks.max_consecutive_wakes = 2;
    let turns = json!([
        {"tool_calls": [until("one"), until("two"), until("three"), until("four")]},
        {"text": "All four are being done."},
        {"expect": ["bash-1"], "text": "One is done."},
        {"expect": ["bash-2"], "text": "Two are done."},
        {"expect": ["bash-3", "And?"], "text": "Three are done."},
        {"expect": ["bash-4"], "text": "All are done."}
    ]);
    let led = Led::new(Room::new(), config, turns).await;
    led.ask("Do it.").await;
    make_file(&led, "one");
    led.turns(2).await;
    make_file(&led, "two");
    led.turns(3).await;
    make_file(&led, "three");
    led.pending(1).await;
    led.agent().when_idle().await;
    assert_eq!(
        (led.triggers().len(), led.requests()),
        (3, 4),
        "the budget is spent"
    );
    led.ask("And?").await;
    make_file(&led, "four");
    led.turns(5).await;
    let notice = TurnTrigger::Notice;
    let message = TurnTrigger::Message;
    assert_eq!(led.triggers(), [message, notice, notice, message, notice]);
    assert_eq!(led.told(), ["bash-1", "bash-2", "bash-3", "bash-4"]);
    expect_file!["./agent/budget.txt"].assert_eq(&led.page());
    led.close().await;
}

#[tokio::test]
async fn a_command_that_leaves_something_running_is_adopted_and_its_end_wakes() {
    let command =
        "(echo $BASHPID > pid; until [ -e go ]; do sleep 0.02; done) & until [ -s pid ]; do sleep 0.02; done";
    let arguments = json!({"command": command, "description": "start a server"});
    let turns = json!([
        {"tool_calls": [{"name": "bash", "arguments": arguments}]},
        {"expect": ["adopted as background task bash-1"], "text": "It runs."},
        {"expect": ["background task bash-1"], "text": "It has ended."}
    ]);
    let led = Led::new(Room::new(), Config::default(), turns).await;
    led.ask("Start it.").await;
    let pid = led.room.pid("pid").await;
    assert!(!process::is_gone(pid));
    led.room.go();
    led.turns(2).await;
    assert!(process::is_gone(pid), "its end was told, so it is gone");
    assert_eq!(led.told(), ["bash-1"]);
    led.close().await;
}
