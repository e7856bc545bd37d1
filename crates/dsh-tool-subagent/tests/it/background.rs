//! Children as background tasks.

use dsh_subagent::{Capabilities, StartFailure, StopReason};
use dsh_tasks::Vocabulary;
use dsh_testkit::{Gate, LogCapture, eventually};
use dsh_tool_subagent::{MaxDepth, ToolSubagentConfig};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rig::{Rig, background};
use crate::scripted::Script;

/// What is read of the task of a child with this script, once it has ended.
async fn end_of(script: Script) -> String {
    let (rig, provider) = Rig::with(script);
    let id = rig.background().await;
    let end = rig.ended(&id).await;
    assert_eq!(provider.running(), 0, "released before its end is told");
    end
}

#[tokio::test]
async fn s62_sl3_the_id_comes_at_once_and_the_answer_can_be_read_again() {
    let gate = Gate::new();
    let script = Script {
        start_gate: Some(gate.clone()),
        ..Script::ends(StopReason::Completed, "background answer")
    };
    let (rig, _) = Rig::with(script);
    let result = rig
        .execute("subagent", background(), CancellationToken::new())
        .await;
    assert_eq!(
        result.single_text(),
        Some("started background subagent task subagent-1")
    );
    assert_eq!(
        result.value,
        Some(json!({ "kind": "background", "taskId": "subagent-1" }))
    );
    result.deliveries.deliver_all();
    let task = rig.tasks.list(Some(rig.parent.agent())).remove(0);
    assert_eq!(
        task.list_line(),
        "subagent-1 [subagent] running — Count files",
        "nobody waits for the start"
    );
    gate.open();
    for _ in 0..2 {
        assert_eq!(rig.ended(&task.id).await, "background answer|[status: completed]");
    }
}

#[tokio::test]
async fn s62_in_the_words_of_jobs() {
    let rig = Rig::without_surface(Vocabulary::Job);
    rig.attach_surface();
    rig.provide("helper", Script::default());
    rig.install(ToolSubagentConfig::new("helper"));
    let result = rig
        .execute("subagent", background(), CancellationToken::new())
        .await;
    assert_eq!(
        result.single_text(),
        Some("started background subagent job subagent-1")
    );
    assert_eq!(
        result.value,
        Some(json!({ "kind": "background", "jobId": "subagent-1" }))
    );
    result.deliveries.deliver_all();
}

#[tokio::test]
async fn s65_a_failed_start_is_a_failed_task() {
    let script = Script {
        start_fault: Some(StartFailure::new("setup failed")),
        ..Script::default()
    };
    assert_eq!(end_of(script).await, "|[status: failed, Error: setup failed]");
}

#[tokio::test]
async fn what_the_seam_refuses_is_a_failed_task_too() {
    let rig = Rig::new();
    let incapable = Script {
        capabilities: Capabilities::NONE,
        ..Script::default()
    };
    rig.provide("helper", incapable);
    rig.install(ToolSubagentConfig {
        persona: Some("a critic".to_owned()),
        max_depth: MaxDepth::ProviderManaged,
        ..ToolSubagentConfig::new("helper")
    });
    let id = rig.background().await;
    assert_eq!(
        rig.ended(&id).await,
        "|[status: failed, Error: subagent provider \"helper\" does not support the \"persona\" capability]"
    );
}

#[tokio::test]
async fn s66_a_kill_during_the_start_is_a_clean_kill() {
    let script = Script {
        start_gate: Some(Gate::new()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let id = rig.background().await;
    eventually("the start", || provider.starts() == 1).await;
    rig.kill(&id, None);
    assert_eq!(rig.ended(&id).await, "|[status: killed]");
    assert_eq!(provider.running(), 0);
}

#[tokio::test]
async fn sl7_a_cleanup_that_failed_is_never_a_clean_kill() {
    let script = Script {
        start_gate: Some(Gate::new()),
        start_fault: Some(StartFailure::new("startup failed").with_rollback("cleanup failed")),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let id = rig.background().await;
    eventually("the start", || provider.starts() == 1).await;
    rig.kill(&id, None);
    assert_eq!(
        rig.ended(&id).await,
        "|[status: failed, AggregateError: startup failed; cleanup failed]"
    );
}

#[tokio::test]
async fn s67_a_kill_ends_the_child_with_the_reason_that_was_given_or_the_usual_one() {
    let log = LogCapture::start();
    let script = Script {
        run_gate: Some(Gate::new()),
        ..Script::ends(StopReason::Completed, "never said")
    };
    let (rig, provider) = Rig::with(script);
    let (first, second) = (rig.background().await, rig.background().await);
    assert_eq!((first.as_str(), second.as_str()), ("subagent-1", "subagent-2"));
    eventually("both children", || provider.running() == 2).await;
    rig.kill(&first, Some("no longer needed"));
    assert_eq!(rig.ended(&first).await, "|[status: killed]");
    assert_eq!(provider.running(), 1, "the other one goes on");
    rig.kill(&second, None);
    assert_eq!(rig.ended(&second).await, "|[status: killed]");
    assert!(log.contains("no longer needed"));
    assert!(log.contains("background subagent task killed"));
    assert_eq!((provider.aborts(), provider.releases()), (2, 2));
}

#[tokio::test]
async fn s68_sl6_every_end_of_a_run_has_its_status() {
    let ends = |stop, reply, diagnostic| {
        end_of(Script {
            diagnostic,
            ..Script::ends(stop, reply)
        })
    };
    assert_eq!(
        ends(StopReason::Completed, "answer", None).await,
        "answer|[status: completed]"
    );
    assert_eq!(
        ends(StopReason::Aborted, "partial", None).await,
        "|[status: killed]"
    );
    for (stop, line) in [
        (StopReason::Error, "[status: failed, error]"),
        (StopReason::MaxTokens, "[status: failed, max-tokens]"),
        (StopReason::Refusal, "[status: failed, refusal]"),
        (
            StopReason::Other("tool-limit".to_owned()),
            "[status: failed, tool-limit]",
        ),
    ] {
        assert_eq!(ends(stop.clone(), "", None).await, format!("|{line}"));
        assert_eq!(
            ends(stop, "so far", None).await,
            format!("so far|{line}"),
            "what was said is kept"
        );
    }
    assert_eq!(
        ends(StopReason::Error, "", Some("line one\nline two")).await,
        "|[status: failed, error; diagnostic: line one line two]"
    );
}

#[tokio::test]
async fn s69_the_release_comes_first_and_its_faults_are_told() {
    let faulty = |run_fault, release_fault, stop| {
        end_of(Script {
            run_fault,
            release_fault,
            ..Script::ends(stop, "")
        })
    };
    let done = StopReason::Completed;
    assert_eq!(
        faulty(Some("transport gone"), None, done.clone()).await,
        "|[status: failed, Error: transport gone]"
    );
    assert_eq!(
        faulty(None, Some("reap failed"), done.clone()).await,
        "|[status: failed, dispose failed: Error: reap failed]"
    );
    assert_eq!(
        faulty(Some("result failed"), Some("reap failed"), done).await,
        "|[status: failed, Error: result failed; dispose failed: Error: reap failed]"
    );
    assert_eq!(
        faulty(None, Some("reap failed"), StopReason::Aborted).await,
        "|[status: failed, dispose failed: Error: reap failed]"
    );
    assert_eq!(
        faulty(None, Some("reap failed"), StopReason::Refusal).await,
        "|[status: failed, refusal; dispose failed: Error: reap failed]"
    );
}

#[tokio::test]
async fn s69_a_task_runs_until_its_child_is_gone() {
    let release = Gate::new();
    let script = Script {
        release_gate: Some(release.clone()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let id = rig.background().await;
    eventually("the child", || provider.running() == 1).await;
    let status = rig.tasks.get(&id, Some(rig.parent.agent())).unwrap();
    assert_eq!(status.status_line(), "[status: running]");
    release.open();
    assert_eq!(rig.ended(&id).await, "scripted reply|[status: completed]");
}

#[tokio::test]
async fn s70_nothing_is_started_that_nobody_could_control() {
    let rig = Rig::without_surface(Vocabulary::Task);
    let provider = rig.provide("helper", Script::default());
    rig.install(ToolSubagentConfig::new("helper"));
    assert_eq!(
        rig.call("subagent", background()).await,
        "Error: background tasks unavailable: no control surface is attached (load dsh-tool-tasks)"
    );
    assert_eq!(provider.starts(), 0);
    assert_eq!(rig.foreground().await, "scripted reply");
    rig.attach_surface();
    assert_eq!(rig.background().await.as_str(), "subagent-1", "no id was burned");
}

#[tokio::test]
async fn the_end_of_the_call_is_not_the_end_of_the_task() {
    let gate = Gate::new();
    let script = Script {
        run_gate: Some(gate.clone()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let token = CancellationToken::new();
    let result = rig.execute("subagent", background(), token.clone()).await;
    result.deliveries.deliver_all();
    eventually("the child", || provider.running() == 1).await;
    token.cancel();
    gate.open();
    let task = rig.tasks.list(Some(rig.parent.agent())).remove(0);
    assert_eq!(rig.ended(&task.id).await, "scripted reply|[status: completed]");
}

#[tokio::test]
async fn a_start_whose_answer_is_dropped_is_ended() {
    let script = Script {
        run_gate: Some(Gate::new()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let result = rig
        .execute("subagent", background(), CancellationToken::new())
        .await;
    eventually("the child", || provider.running() == 1).await;
    drop(result);
    let task = rig.tasks.list(Some(rig.parent.agent())).remove(0);
    assert_eq!(rig.ended(&task.id).await, "|[status: killed]");
    assert_eq!(provider.running(), 0);
}

#[tokio::test]
async fn the_parents_end_is_that_of_its_children() {
    let script = Script {
        run_gate: Some(Gate::new()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let ends = rig.ends();
    rig.background().await;
    eventually("the child", || provider.running() == 1).await;
    rig.parent.dispose().await.unwrap();
    assert_eq!((provider.releases(), provider.running()), (1, 0));
    assert_eq!(ends.lock().unwrap()[..], ["[status: killed, owner disposed]"]);
}

#[tokio::test]
async fn a_start_that_the_parents_end_cuts_off_leaves_nothing() {
    let script = Script {
        start_gate: Some(Gate::new()),
        ..Script::default()
    };
    let (rig, provider) = Rig::with(script);
    let ends = rig.ends();
    rig.background().await;
    eventually("the start", || provider.starts() == 1).await;
    rig.parent.dispose().await.unwrap();
    assert_eq!((provider.starts(), provider.running()), (1, 0));
    assert_eq!(ends.lock().unwrap()[..], ["[status: killed, owner disposed]"]);
}
