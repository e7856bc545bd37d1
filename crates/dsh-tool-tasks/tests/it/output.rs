//! `task_output`.

use crate::support::{Harness, Source, Spec};
use dsh_tasks::{Outcome, Vocabulary};
use dsh_tool_tasks::ToolTasksConfig;
use serde_json::{Value, json};

fn read_args(id: &str) -> Value {
    json!({ "task_id": id })
}

#[tokio::test]
async fn t64_a_stream_is_read_once_and_always_ends_with_its_status() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.print("line one\n");
    let result = harness
        .execute("task_output", read_args("bash-1"), Some(owner.agent()))
        .await;
    assert_eq!(result.single_text(), Some("line one\n[status: running]"));
    let value = result.value.clone().expect("a value");
    assert_eq!(value["text"], "line one\n");
    assert_eq!(value["task"]["id"], "bash-1");
    assert_eq!(value["task"]["status"], "running");
    assert_eq!(value["task"]["kind"], "bash");
    assert_eq!(value["task"]["label"], "pnpm test");
    for withheld in ["owner", "reported", "finishedAt", "detail"] {
        assert_eq!(value["task"].get(withheld), None, "{withheld}");
    }
    result.deliveries.deliver_all();
    assert_eq!(
        harness.read(&task.id, Some(owner.agent())).await,
        "(no new output)\n[status: running]"
    );
}

#[tokio::test]
async fn t65_a_final_output_is_read_when_it_is_there_and_as_often_as_one_likes() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec {
        source: Source::Final,
        owner: Some(owner.agent()),
        ..Spec::default()
    }
    .start(&harness);
    assert_eq!(
        harness.read(&task.id, Some(owner.agent())).await,
        "(no new output)\n[status: running]"
    );
    task.settle(Outcome::completed().output("the answer").detail("completed"));
    harness.terminal(&task.id, Some(owner.agent())).await;
    for _ in 0..3 {
        let text = harness.read(&task.id, Some(owner.agent())).await;
        assert_eq!(text, "the answer\n[status: completed, completed]");
    }
}

#[tokio::test]
async fn t66_a_limit_holds_for_the_whole_reply_and_keeps_the_status() {
    let harness = Harness::new();
    let task = Spec {
        limit: Some(48),
        ..Spec::default()
    }
    .start(&harness);
    task.print(&"日本".repeat(100));
    let text = harness.read(&task.id, None).await;
    assert!(text.len() <= 48, "{} bytes", text.len());
    assert!(text.ends_with("[output truncated]\n[status: running]"), "{text}");
    assert!(text.starts_with(['日', '本']), "{text}");
}

#[tokio::test]
async fn t67_a_reply_within_its_limit_is_as_it_would_be_without() {
    let harness = Harness::new();
    let task = Spec {
        limit: Some(64),
        ..Spec::default()
    }
    .start(&harness);
    assert_eq!(
        harness.read(&task.id, None).await,
        "(no new output)\n[status: running]"
    );
    task.print("line one\n");
    assert_eq!(harness.read(&task.id, None).await, "line one\n[status: running]");
}

#[tokio::test]
async fn t69_a_failing_read_is_an_error_within_the_limit() {
    let harness = Harness::new();
    let task = Spec {
        limit: Some(64),
        source: Source::Broken("disk on fire ".repeat(20)),
        ..Spec::default()
    }
    .start(&harness);
    let result = harness
        .execute("task_output", read_args(task.id.as_str()), None)
        .await;
    assert!(result.is_error);
    let text = result.single_text().expect("one text");
    assert!(text.starts_with("Error: disk on fire"), "{text}");
    assert!(
        text.ends_with("\n[result truncated]") && text.len() <= 64,
        "{text}"
    );
}

#[tokio::test]
async fn t71_a_wait_blocks_until_the_end() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    task.print("done deal\n");
    let args = json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 60_000 });
    let waiting = harness.call("task_output", args, None);
    let settling = async { task.settle(Outcome::completed()) };
    let (text, ()) = tokio::join!(waiting, settling);
    assert_eq!(text, "done deal\n[status: completed]");
}

#[tokio::test(start_paused = true)]
async fn t72_a_wait_is_capped_and_its_timeout_is_no_error() {
    let config = ToolTasksConfig {
        wait_timeout_ms: 10.0,
        max_wait_timeout_ms: 20.0,
        ..ToolTasksConfig::default()
    };
    let harness = Harness::with(Vocabulary::Task, config);
    let task = Spec::default().start(&harness);
    let elapsed = async |args: Value| {
        let start = tokio::time::Instant::now();
        let text = harness.call("task_output", args, None).await;
        assert_eq!(text, "(no new output)\n[status: running]");
        start.elapsed().as_millis()
    };
    let asked = elapsed(json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 600_000 })).await;
    assert!((20..100).contains(&asked), "{asked} ms");
    let default = elapsed(json!({ "task_id": "bash-1", "wait": true })).await;
    assert!((10..20).contains(&default), "{default} ms");
    let unasked = elapsed(json!({ "task_id": "bash-1", "wait": false, "timeout_ms": 600_000 })).await;
    assert_eq!(unasked, 0);
    assert!(task.reasons().is_empty(), "the task lives on");
}

#[tokio::test]
async fn t73_bad_arguments_are_named() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    for (args, expected) in [
        (
            json!({ "task_id": "" }),
            r#"invalid task_id: expected a non-empty string, got """#,
        ),
        (
            json!({}),
            r#"invalid arguments: missing required property "task_id""#,
        ),
        (
            json!({ "wait": "yes", "timeout_ms": "5" }),
            concat!(
                r#"invalid arguments: missing required property "task_id"; "#,
                r#""wait" must be a boolean; "timeout_ms" must be a number"#
            ),
        ),
        (
            json!({ "task_id": "bash-99" }),
            "unknown task bash-99 (your tasks: bash-1)",
        ),
        (
            json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 0 }),
            "invalid wait timeout: expected a positive number of milliseconds, got 0",
        ),
        (
            json!({ "task_id": "bash-1", "wait": true, "timeout_ms": -2.5 }),
            "invalid wait timeout: expected a positive number of milliseconds, got -2.5",
        ),
    ] {
        let result = harness.execute("task_output", args, None).await;
        assert!(result.is_error);
        assert_eq!(result.single_text(), Some(format!("Error: {expected}").as_str()));
    }
    let ignored = json!({ "task_id": "bash-1", "timeout_ms": -1, "nonsense": [], "job_id": "x", "id": 7 });
    assert_eq!(
        harness.call("task_output", ignored, None).await,
        "(no new output)\n[status: running]"
    );
    drop(task);
}

#[tokio::test]
async fn an_unread_rest_is_readable_after_the_end() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    task.print("first\n");
    harness.read(&task.id, None).await;
    task.print("rest");
    task.settle(Outcome::completed().detail("exit code: 0"));
    harness.terminal(&task.id, None).await;
    assert_eq!(
        harness.read(&task.id, None).await,
        "rest\n[status: completed, exit code: 0]"
    );
    assert_eq!(
        harness.read(&task.id, None).await,
        "(no new output)\n[status: completed, exit code: 0]"
    );
}

#[tokio::test]
async fn the_job_vocabulary_names_everything_a_job() {
    let harness = Harness::with(Vocabulary::Job, ToolTasksConfig::default());
    let task = Spec::default().start(&harness);
    let call = async |args| harness.call("job_output", args, None).await;
    assert_eq!(
        call(json!({ "job_id": "bash-1" })).await,
        "(no new output)\n[status: running]"
    );
    assert_eq!(
        call(json!({ "job_id": "x-1" })).await,
        "Error: unknown job x-1 (your jobs: bash-1)"
    );
    let empty = call(json!({ "job_id": "" })).await;
    assert_eq!(
        empty,
        r#"Error: invalid job_id: expected a non-empty string, got """#
    );
    let missing = call(json!({})).await;
    assert_eq!(
        missing,
        r#"Error: invalid arguments: missing required property "job_id""#
    );
    let result = harness
        .execute("job_output", json!({ "job_id": "bash-1" }), None)
        .await;
    assert_eq!(result.value.expect("a value")["job"]["id"], "bash-1");
    drop(task);
}
