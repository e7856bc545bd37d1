//! What a foreground command leaves running.

use std::num::NonZeroU64;

use dsh_tasks::TasksConfig;
use dsh_testkit::process::{gone, is_gone};
use dsh_tool_bash::{Leftover, ToolBashConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup};

const SERVER: &str = "(echo serving; until [ -e go ]; do sleep 0.02; done; echo served) & echo $! > pid; \
                      sleep 0.1; echo done";

fn with(leftover: Leftover) -> Harness {
    let tool = ToolBashConfig {
        leftover: Some(leftover),
        ..ToolBashConfig::default()
    };
    Setup {
        tool,
        ..Setup::default()
    }
    .harness()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_adopted_and_tells_each_byte_once() {
    let harness = Harness::new();
    // The subshell sleeps in children, so one or two processes are alive at any look.
    let text = harness.foreground(SERVER).await;
    let (output, note) = text.split_once('[').unwrap();
    assert_eq!(output, "serving\ndone\n");
    assert!(
        note.ends_with(" still running; adopted as background task bash-1]"),
        "{text}"
    );

    let id = "bash-1".into();
    let snapshot = harness.task(&id);
    assert_eq!(snapshot.label.as_ref(), SERVER);
    assert!(
        snapshot
            .status_line()
            .starts_with("[status: running, shell exited with code 0, ")
    );
    assert_eq!(harness.read(&id), "");
    std::fs::write(harness.file("go"), "").unwrap();
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 0]");
    assert_eq!(harness.read(&id), "served\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exact_note_and_the_kill_of_what_was_adopted() {
    let harness = Harness::new();
    let text = harness.foreground("sleep 60 & echo $! > pid; exit 3").await;
    assert_eq!(
        text,
        "(no output)\n[1 process still running; adopted as background task bash-1]\n[exit code: 3]"
    );
    let pid = harness.pid("pid").await;
    let id = "bash-1".into();
    harness.kill(&id);
    assert_eq!(
        harness.ended(&id).await,
        "[status: killed, shell had exited with code 3]"
    );
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_foreground_timeout_is_not_the_adopted_tasks() {
    let harness = Harness::new();
    let args = json!({ "command": SERVER, "description": "serve", "timeoutMs": 4000 });
    let began = std::time::Instant::now();
    harness.call(args).await.deliveries.deliver_all();
    let id = "bash-1".into();
    dsh_testkit::eventually("the timeout has passed", || began.elapsed().as_millis() > 4300).await;
    assert!(!harness.task(&id).status.is_terminal());
    std::fs::write(harness.file("go"), "").unwrap();
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 0]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_at_its_limit_adopts_and_then_starts_no_more() {
    let tasks = TasksConfig {
        max_concurrent_tasks_per_owner: NonZeroU64::MIN,
        ..TasksConfig::default()
    };
    let harness = Setup {
        tasks,
        ..Setup::default()
    }
    .harness();
    let first = harness.background("sleep 60").await;
    let text = harness.foreground("sleep 60 & exit 0").await;
    assert_eq!(
        text,
        "(no output)\n[1 process still running; adopted as background task bash-2]"
    );
    harness.kill(&first);
    harness.ended(&first).await;
    let args = json!({ "command": "true", "description": "x", "run_in_background": true });
    assert!(
        harness.call(args).await.is_error,
        "the adopted one fills the limit"
    );
    harness.kill(&"bash-2".into());
    harness.ended(&"bash-2".into()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_surface_or_by_setting_it_is_ended() {
    let no_surface = Setup {
        surface: false,
        ..Setup::default()
    }
    .harness();
    let no_registry = Setup {
        registry: false,
        ..Setup::default()
    }
    .harness();
    let tool = ToolBashConfig {
        enable_run_in_background: false,
        ..ToolBashConfig::default()
    };
    let no_background = Setup {
        tool,
        ..Setup::default()
    }
    .harness();
    for harness in [no_surface, no_registry, no_background, with(Leftover::End)] {
        let text = harness.foreground("sleep 60 & echo $! > pid; echo hi").await;
        assert_eq!(text, "hi\n[1 process left running, now ended]");
        assert!(is_gone(harness.pid("pid").await));
        assert!(harness.tasks.list(Some(harness.owner.agent())).is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_words_of_what_is_ended_are_told() {
    let harness = with(Leftover::End);
    let left = "(trap 'echo last words; exit' TERM; echo > ready; while :; do sleep 0.05; done) &";
    let text = harness
        .foreground(&format!(
            "{left} until [ -e ready ]; do sleep 0.02; done; echo hi"
        ))
        .await;
    assert!(
        text.starts_with("hi\nlast words\n[") && text.ends_with("left running, now ended]"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_it_is_a_setting_and_the_executors_end_is_its_end() {
    let harness = with(Leftover::Leave);
    let text = harness.foreground("sleep 60 & echo $! > pid; echo hi").await;
    assert_eq!(text, "hi\n[1 process still running]");
    let pid = harness.pid("pid").await;
    assert!(!is_gone(pid));
    harness.scope.close().await.unwrap();
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unowned_callers_adopt_too() {
    let harness = Harness::new();
    let args = json!({ "command": "sleep 60 & echo hi", "description": "x" });
    let result = harness.call_for(None, args, CancellationToken::new()).await;
    assert_eq!(
        result.single_text().unwrap(),
        "hi\n[1 process still running; adopted as background task bash-1]"
    );
    let killed = harness.tasks.kill(&"bash-1".into(), None, None).unwrap();
    killed.claim.deliver();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_adopted_in_an_answer_that_is_dropped_is_ended_and_its_end_is_told() {
    let harness = Harness::new();
    let args = json!({ "command": "sleep 60 & echo $! > pid", "description": "x" });
    let result = harness.call(args).await;
    assert!(
        result
            .single_text()
            .unwrap()
            .contains("adopted as background task bash-1")
    );
    let pid = harness.pid("pid").await;
    assert!(!is_gone(pid));
    drop(result);
    let id = "bash-1".into();
    harness
        .reads(&id, "[status: killed, shell had exited with code 0]")
        .await;
    assert!(is_gone(pid));
    assert!(!harness.task(&id).reported, "its end is still to be told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_held_outside_is_told() {
    let harness = Harness::new();
    let text = harness
        .foreground("setsid sleep 60 & echo $! > pid; sleep 0.1; echo hi")
        .await;
    let outsider = harness.pid("pid").await;
    assert_eq!(text, "hi\n[pipe still held by a process outside the tree]");
    harness.foreground(&format!("kill -KILL {outsider}")).await;
    gone(outsider).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_substitution_does_not_hold_the_call() {
    let harness = Harness::new();
    // A moment after the shell, `tee` may still be there beside the one that becomes `sleep`.
    let text = harness
        .foreground("exec > >(tee log; exec sleep 60) 2>&1; echo hi")
        .await;
    assert!(
        text.starts_with("hi\n[") && text.ends_with(" still running; adopted as background task bash-1]"),
        "{text}"
    );
    let id = "bash-1".into();
    harness.kill(&id);
    assert_eq!(
        harness.ended(&id).await,
        "[status: killed, shell had exited with code 0]"
    );
    assert_eq!(harness.read(&id), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owners_end_ends_what_was_adopted() {
    let harness = Harness::new();
    harness
        .foreground("nohup sleep 60 >/dev/null 2>&1 & echo $! > pid")
        .await;
    let pid = harness.pid("pid").await;
    assert!(!is_gone(pid));
    harness.owner.dispose().await.unwrap();
    assert!(is_gone(pid));
}
