//! Ends that could not be brought about or proven: what the model reads, and what programs get.

use std::sync::Arc;
use std::time::Duration;

use dsh_bash::ShellExit;
use dsh_tasks::{Cause, Survivor, TaskStatus};
use dsh_tool_bash::{Leftover, ToolBashConfig};
use serde_json::json;

use crate::harness::{Harness, Setup};
use crate::played::{Played, Process, member, pass};

fn harness(process: &Arc<Process>) -> Harness {
    with(process, ToolBashConfig::default())
}

fn with(process: &Arc<Process>, tool: ToolBashConfig) -> Harness {
    Setup {
        tool,
        executor: Some(Arc::new(Played(Arc::clone(process)))),
        ..Setup::default()
    }
    .harness()
}

fn signal(name: &str) -> ShellExit {
    ShellExit::Signal {
        name: name.into(),
        core_dumped: false,
    }
}

fn unseen(reason: &str) -> ShellExit {
    ShellExit::Unseen {
        reason: reason.into(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_task_is_not_over_before_its_tree_is_and_names_who_survives() {
    let process = Process::new();
    let harness = harness(&process);
    let id = harness.background("make").await;
    harness.kill(&id);
    process.exit(
        signal("SIGTERM"),
        vec![member(4242, "sleep 60"), member(4243, "cat")],
    );
    pass(Duration::from_secs(60)).await;
    assert_eq!(
        harness.task(&id).status_line(),
        "[status: stopping, shell ended by SIGTERM, 2 processes running]"
    );
    process.end(signal("SIGTERM"), vec![member(4242, "sleep 60")]);
    assert_eq!(
        harness.ended(&id).await,
        "[status: killed, signal: SIGTERM; 1 process survived: 4242 sleep 60]"
    );
    let snapshot = harness.task(&id);
    let survivor = Survivor {
        pid: 4242,
        command: "sleep 60".into(),
    };
    assert_eq!(
        (snapshot.status, snapshot.cause, snapshot.survivors),
        (TaskStatus::Killed, Some(Cause::Caller), vec![survivor])
    );
}

#[tokio::test(start_paused = true)]
async fn an_end_that_was_not_proven_is_failed_and_no_exit_code() {
    let process = Process::new();
    let harness = harness(&process);
    let id = harness.background("make").await;
    harness.kill(&id);
    process.end(unseen("guard lost; end of the tree not proven"), Vec::new());
    assert_eq!(
        harness.ended(&id).await,
        "[status: failed, guard lost; end of the tree not proven]"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_guard_and_who_it_left_are_in_the_foreground_result() {
    for (found, survivors, text) in [
        (
            "guard lost; tree seen empty",
            vec![],
            "(no output)\n[guard lost; tree seen empty]",
        ),
        (
            "guard lost",
            vec![member(7, "sleep 60")],
            "(no output)\n[1 process survived: 7 sleep 60]\n[guard lost]",
        ),
    ] {
        let process = Process::new();
        let harness = harness(&process);
        process.end(unseen(found), survivors);
        let result = harness
            .call(json!({ "command": "make", "description": "x" }))
            .await;
        assert_eq!(result.single_text().unwrap(), text);
        assert!(result.is_error, "nobody may take it for a success");
        let value = result.value.unwrap();
        assert_eq!(
            (&value["exitCode"], &value["signal"]),
            (&json!(null), &json!(null))
        );
        assert!(harness.tasks.list(Some(harness.owner.agent())).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_did_not_end_everybody_names_who_survives() {
    let process = Process::new();
    let harness = harness(&process);
    let call = harness.call(json!({ "command": "make", "description": "x", "timeoutMs": 700 }));
    let ends = async {
        pass(Duration::from_secs(1)).await;
        assert!(process.asked().is_some());
        process.end(signal("SIGKILL"), vec![member(7, "sleep 60")]);
    };
    let (result, ()) = tokio::join!(call, ends);
    assert_eq!(
        result.single_text().unwrap(),
        "(no output)\n[1 process survived: 7 sleep 60]\n[timed out after 700ms]\n[killed by signal: SIGKILL]"
    );
}

#[tokio::test(start_paused = true)]
async fn leftovers_that_could_not_be_ended_are_named() {
    let process = Process::new();
    let tool = ToolBashConfig {
        leftover: Some(Leftover::End),
        ..ToolBashConfig::default()
    };
    let harness = with(&process, tool);
    process.exit(ShellExit::Code(0), vec![member(7, "sleep 60")]);
    let ends = async {
        pass(Duration::from_secs(1)).await;
        process.end(ShellExit::Code(0), vec![member(7, "sleep 60")]);
    };
    let (text, ()) = tokio::join!(harness.foreground("make"), ends);
    assert_eq!(text, "(no output)\n[1 process survived: 7 sleep 60]");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_was_reached_is_told_in_the_foreground_too() {
    let limit = "memory limit of 1048576 bytes reached";
    let process = Process::new();
    let harness = harness(&process);
    process.end_at(signal("SIGKILL"), Vec::new(), vec![limit.into()]);
    assert_eq!(
        harness.foreground("make").await,
        format!("(no output)\n[{limit}]\n[killed by signal: SIGKILL]")
    );

    let process = Process::new();
    let tool = ToolBashConfig {
        leftover: Some(Leftover::End),
        ..ToolBashConfig::default()
    };
    let harness = with(&process, tool);
    process.exit(ShellExit::Code(1), vec![member(7, "sleep 60")]);
    let ends = async {
        pass(Duration::from_secs(1)).await;
        process.end_at(ShellExit::Code(1), Vec::new(), vec![limit.into()]);
    };
    let (text, ()) = tokio::join!(harness.foreground("make"), ends);
    assert_eq!(
        text,
        format!("(no output)\n[1 process left running, now ended]\n[{limit}]\n[exit code: 1]")
    );
}
