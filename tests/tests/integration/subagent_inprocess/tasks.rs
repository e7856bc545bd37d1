//! What children run in the background.

use dsh_testkit::process::is_gone;
use serde_json::json;

use super::family::{Family, calls, delegates, delegates_in_background, runs, says, starts};

/// Waits for the file `go`.
const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.02; done";

#[tokio::test]
async fn what_a_child_left_running_ends_with_it_and_its_answer_says_so() {
    let family = Family::new(&[
        ("lead", json!([delegates("subagent", "Serve."), says("I see.")])),
        (
            "spawn",
            json!([
                starts("setsid sleep 600 & echo $! > stray; echo $$ > pid; exec sleep 600"),
                runs("until [ -s pid ]; do sleep 0.02; done"),
                says("It serves.")
            ]),
        ),
    ])
    .await;
    family.ask("Go.").await;
    assert_eq!(
        family.result("call-1"),
        "It serves.\n[ended with the subagent: bash-1 (bash: setsid sleep 600 & echo $! > stray; echo $$ > pid; \
         exec sleep 600)]"
    );
    for name in ["pid", "stray"] {
        assert!(is_gone(family.room.pid(name).await), "{name}");
    }
    assert_eq!(family.context().tasks.list(Some(family.lead())), []);
    family.close().await;
}

#[tokio::test]
async fn what_a_foreground_command_of_a_child_left_running_ends_with_it_too() {
    let family = Family::new(&[
        ("lead", json!([delegates("subagent", "Serve."), says("I see.")])),
        (
            "spawn",
            json!([runs("sleep 600 & echo $! > pid"), {"expect": ["adopted as background task bash-1"], "text": "It serves."}]),
        ),
    ])
    .await;
    family.ask("Go.").await;
    assert_eq!(
        family.result("call-1"),
        "It serves.\n[ended with the subagent: bash-1 (bash: sleep 600 & echo $! > pid)]"
    );
    assert!(is_gone(family.room.pid("pid").await));
    family.close().await;
}

#[tokio::test]
async fn who_delegates_sees_and_kills_the_tasks_of_its_child_and_the_child_is_told() {
    let family = Family::new(&[
        (
            "lead",
            json!([
                delegates_in_background("Serve."),
                runs("until [ -s pid ] && [ -e waits ]; do sleep 0.02; done"),
                calls("task_list", json!({})),
                calls("task_kill", json!({"task_id": "bash-1"})),
                calls("task_output", json!({"task_id": "bash-1", "wait": true})),
                runs("touch go"),
                calls("task_output", json!({"task_id": "subagent-1", "wait": true})),
                says("I see.")
            ]),
        ),
        (
            "spawn",
            json!([
                starts("echo $$ > pid; exec sleep 600"),
                runs(&format!("touch waits; {UNTIL_GO}")),
                {"expect": ["background task bash-1", "killed"], "text": "Somebody killed it."}
            ]),
        ),
    ])
    .await;
    family.ask("Go.").await;
    let list = family.result("call-3");
    assert!(
        list.contains("subagent-1 [subagent] running") && list.contains("bash-1 [bash] running"),
        "{list}"
    );
    assert_eq!(family.result("call-4"), "requested cancellation of task bash-1");
    let read = family.result("call-5");
    assert!(read.contains("[status: killed, signal: SIGTERM"), "{read}");
    assert_eq!(
        family.result("call-7"),
        "Somebody killed it.\n[status: completed]"
    );
    assert!(is_gone(family.room.pid("pid").await));
    family.close().await;
}

#[tokio::test]
async fn a_parent_that_goes_leaves_nothing_of_its_children() {
    let family = Family::new(&[
        (
            "lead",
            json!([delegates_in_background("Work."), says("It works.")]),
        ),
        (
            "spawn",
            json!([
                starts("setsid sleep 600 & echo $! > stray; echo $$ > back; exec sleep 600"),
                delegates("subagent", "Work, too."),
                runs("echo $$ > deep; sleep 600"),
            ]),
        ),
    ])
    .await;
    family.ask("Go.").await;
    let mut pids = Vec::new();
    for name in ["stray", "back", "deep"] {
        pids.push(family.room.pid(name).await);
    }
    assert!(pids.iter().all(|pid| !is_gone(*pid)));
    family.agent.dispose().await.expect("it goes");
    assert!(pids.iter().all(|pid| is_gone(*pid)));
    family.close().await;
}

#[tokio::test]
async fn a_child_in_the_background_is_killed_with_what_it_runs() {
    let family = Family::new(&[
        (
            "lead",
            json!([
                delegates_in_background("Work."),
                runs("until [ -s pid ]; do sleep 0.02; done"),
                calls("task_kill", json!({"task_id": "subagent-1"})),
                calls("task_output", json!({"task_id": "subagent-1", "wait": true})),
                says("Enough.")
            ]),
        ),
        ("spawn", json!([runs("echo $$ > pid; sleep 600")])),
    ])
    .await;
    family.ask("Go.").await;
    assert_eq!(family.result("call-4"), "(no new output)\n[status: killed]");
    assert!(is_gone(family.room.pid("pid").await), "killed is gone");
    family.close().await;
}
