//! Calls that hand their command to the registry.

use std::num::NonZeroU64;

use dsh_tasks::{TaskStatus, TasksConfig, Vocabulary};
use dsh_testkit::{eventually, process::is_gone};
use dsh_tool_bash::ToolBashConfig;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c92_c426_started_read_and_completed() {
    let harness = Harness::new();
    let args = json!({ "command": "echo bg-ok", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert_eq!(result.single_text().unwrap(), "started background task bash-1");
    assert_eq!(
        result.value,
        Some(json!({ "kind": "background", "taskId": "bash-1" }))
    );
    result.deliveries.deliver_all();
    let id = "bash-1".into();
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 0]");
    assert_eq!(harness.read(&id), "bg-ok\n");
    assert_eq!(harness.task(&id).label.as_ref(), "echo bg-ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exits_are_completed_with_their_code() {
    let harness = Harness::new();
    for (command, line) in [
        ("exit 7", "[status: completed, exit code: 7]"),
        ("false | cat", "[status: completed, exit code: 0]"),
        ("kill -9 $$", "[status: killed, signal: SIGKILL]"),
        (
            "bash -c 'kill -9 $$'; exit $?",
            "[status: completed, exit code: 137]",
        ),
    ] {
        let id = harness.background(command).await;
        assert_eq!(harness.ended(&id).await, line, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c93_a_plain_kill() {
    let harness = Harness::new();
    let id = harness.background("echo $$ > pid; exec sleep 60").await;
    let pid = harness.pid("pid").await;
    harness.kill(&id);
    assert_eq!(harness.ended(&id).await, "[status: killed, signal: SIGTERM]");
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c94_a_signal_of_its_own() {
    let harness = Harness::new();
    let id = harness.background("kill -TERM $$").await;
    assert_eq!(harness.ended(&id).await, "[status: killed, signal: SIGTERM]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c95_the_caller_owns_it() {
    let harness = Harness::new();
    let id = harness.background("sleep 60").await;
    let refusal = harness.tasks.get(&id, None).unwrap_err().to_string();
    assert!(refusal.contains("belongs to another session"), "{refusal}");
    harness.kill(&id);
    harness.ended(&id).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_lasts_as_long_as_its_tree() {
    let harness = Harness::new();
    let id = harness
        .background("nohup sleep 60 >/dev/null 2>&1 & echo $! > pid; sleep 60 & exit 0")
        .await;
    harness
        .reads(
            &id,
            "[status: running, shell exited with code 0, 2 processes running]",
        )
        .await;
    let pid = harness.pid("pid").await;
    let row = harness.task(&id).list_line();
    assert!(
        row.starts_with("bash-1 [bash] running, shell exited with code 0, 2 processes running — nohup"),
        "{row}"
    );
    harness.kill(&id);
    assert_eq!(
        harness.ended(&id).await,
        "[status: killed, shell had exited with code 0]"
    );
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_that_ends_by_itself_keeps_the_shells_exit() {
    let harness = Harness::new();
    let id = harness
        .background("(until [ -e go ]; do sleep 0.02; done; echo late) & exit 5")
        .await;
    eventually("shell exited", || {
        let line = harness.task(&id).status_line();
        line.starts_with("[status: running, shell exited with code 5, ")
    })
    .await;
    std::fs::write(harness.file("go"), "").unwrap();
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 5]");
    assert_eq!(harness.read(&id), "late\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_holds_in_the_background_too() {
    let harness = Harness::new();
    let args = json!({
        "command": "echo up; sleep 60", "description": "x", "run_in_background": true, "timeoutMs": 1500,
    });
    harness.call(args).await.deliveries.deliver_all();
    let id = "bash-1".into();
    assert_eq!(
        harness.ended(&id).await,
        "[status: killed, signal: SIGTERM; timed out after 1500ms]"
    );
    assert_eq!(harness.read(&id), "up\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_helper_that_ignores_term_is_gone_when_killed_is_said() {
    let harness = Harness::new();
    let helper = "(trap '' TERM; echo $BASHPID > pid.new; mv pid.new pid; while :; do sleep 0.05; done) >/dev/null 2>&1 & wait";
    let id = harness.background(helper).await;
    let pid = harness.pid("pid").await;
    harness.kill(&id);
    assert_eq!(harness.ended(&id).await, "[status: killed, signal: SIGTERM]");
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_pipe_is_told_with_the_exit() {
    let harness = Harness::new();
    let id = harness
        .background("setsid sleep 60 & echo $! > pid; exit 0")
        .await;
    let line = harness.ended(&id).await;
    let outsider = harness.pid("pid").await;
    assert_eq!(
        line,
        "[status: completed, exit code: 0; pipe still held by a process outside the tree]"
    );
    harness.foreground(&format!("kill -KILL {outsider}")).await;
    dsh_testkit::process::gone(outsider).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawn_failure_is_a_failed_task_that_can_be_read() {
    let harness = Setup {
        ambient: Some(("PATH", "/nowhere")),
        ..Setup::default()
    }
    .harness();
    let id = harness.background("true").await;
    let line = harness.ended(&id).await;
    assert!(
        line.starts_with("[status: failed, spawn failed: cannot run bash: ENOENT"),
        "{line}"
    );
    let text = harness.read(&id);
    assert!(text.starts_with("[stderr]\nspawn failed: "), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owners_end_ends_the_task() {
    let harness = Harness::new();
    let id = harness.background("echo $$ > pid; sleep 60").await;
    let pid = harness.pid("pid").await;
    assert_eq!(harness.task(&id).status, TaskStatus::Running);
    harness.owner.dispose().await.unwrap();
    assert!(is_gone(pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c96_without_a_registry() {
    let harness = Setup {
        registry: false,
        ..Setup::default()
    }
    .harness();
    let args = json!({ "command": "touch ran", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert!(result.is_error);
    assert_eq!(
        result.single_text().unwrap(),
        "Error: background tasks unavailable: load dsh-tasks and dsh-tool-tasks"
    );
    assert_eq!(harness.foreground("ls").await, "(no output)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c97_c427_a_cancelled_call_starts_nothing() {
    let harness = Harness::new();
    let token = CancellationToken::new();
    token.cancel();
    let args = json!({ "command": "touch ran", "description": "x", "run_in_background": true });
    let result = harness.call_for(Some(harness.owner.agent()), args, token).await;
    assert_eq!(
        result.single_text().unwrap(),
        "Error: tool call aborted before dispatch"
    );
    assert_eq!(harness.foreground("ls").await, "(no output)");
    assert!(harness.tasks.list(Some(harness.owner.agent())).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_whose_answer_is_dropped_is_ended_and_its_end_is_told() {
    let harness = Harness::new();
    let args = json!({ "command": "echo $$ > pid; sleep 60", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert_eq!(result.single_text().unwrap(), "started background task bash-1");
    let pid = harness.pid("pid").await;
    drop(result);
    let id = "bash-1".into();
    harness.reads(&id, "[status: killed, signal: SIGTERM]").await;
    assert!(is_gone(pid));
    assert!(!harness.task(&id).reported, "its end is still to be told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c98_without_a_surface() {
    let harness = Setup {
        surface: false,
        ..Setup::default()
    }
    .harness();
    let args = json!({ "command": "touch ran", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert_eq!(
        result.single_text().unwrap(),
        "Error: background tasks unavailable: no control surface is attached (load dsh-tool-tasks)"
    );
    assert_eq!(harness.foreground("ls").await, "(no output)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c99_switched_off_is_hidden_and_refused() {
    let tool = ToolBashConfig {
        enable_run_in_background: false,
        ..ToolBashConfig::default()
    };
    let harness = Setup {
        tool,
        ..Setup::default()
    }
    .harness();
    let definition = harness.tools.definitions().remove(0);
    let properties = definition.input_schema["properties"].as_object().unwrap();
    assert_eq!(
        properties.keys().collect::<Vec<_>>(),
        ["command", "description", "timeoutMs", "workdir"]
    );
    assert!(
        definition
            .description
            .contains("Background execution is not available")
    );
    assert!(!definition.description.contains("run_in_background"));
    let args = json!({ "command": "touch ran", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert_eq!(
        result.single_text().unwrap(),
        "Error: run_in_background is disabled for this deployment (enableRunInBackground: false)"
    );
    assert_eq!(harness.foreground("ls").await, "(no output)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_owner_is_refused_before_anything_starts() {
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
    let args = json!({ "command": "touch ran", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert!(result.is_error, "{result:?}");
    assert_eq!(harness.foreground("ls").await, "(no output)");
    harness.kill(&first);
    harness.ended(&first).await;
    assert_eq!(harness.background("true").await.as_str(), "bash-2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_vocabulary() {
    let tasks = TasksConfig {
        vocabulary: Vocabulary::Job,
        ..TasksConfig::default()
    };
    let harness = Setup {
        tasks,
        ..Setup::default()
    }
    .harness();
    let args = json!({ "command": "true", "description": "x", "run_in_background": true });
    let result = harness.call(args).await;
    assert_eq!(result.single_text().unwrap(), "started background job bash-1");
    assert_eq!(
        result.value.unwrap(),
        json!({ "kind": "background", "jobId": "bash-1" })
    );
    let description = harness.tools.definitions().remove(0).description;
    assert!(
        description.contains("job_output") && !description.contains("task"),
        "{description}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uninstalling_touches_no_task() {
    let harness = Harness::new();
    let id = harness
        .background("until [ -e go ]; do sleep 0.02; done; exit 2")
        .await;
    harness.handle.uninstall().await.unwrap();
    assert_eq!(harness.task(&id).status, TaskStatus::Running);
    std::fs::write(harness.file("go"), "").unwrap();
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 2]");
}
