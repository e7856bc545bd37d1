//! `task_list`, `task_kill`, and the cards of all three.

use std::time::Duration;

use crate::support::{Cancel, HandTask, Harness, Source, Spec};
use dsh_tasks::{Outcome, TaskStatus, Vocabulary};
use dsh_tool_tasks::ToolTasksConfig;
use dsh_tools::{CallCard, CardKind, Concurrency};
use serde_json::json;

#[tokio::test]
async fn t74_the_list_shows_the_callers_own_and_what_nobody_owns() {
    let harness = Harness::new();
    let (owner, other) = (harness.agent("owner"), harness.agent("other"));
    assert_eq!(
        harness.call("task_list", json!({}), Some(owner.agent())).await,
        "(no background tasks)"
    );
    let own = Spec::owned_by(owner.agent()).start(&harness);
    let answer = Spec {
        kind: "subagent",
        label: "look\nit up",
        ..Spec::default()
    }
    .start(&harness);
    own.settle(Outcome::completed().detail("exit code: 0"));
    harness.terminal(&own.id, Some(owner.agent())).await;

    let result = harness.execute("task_list", json!({}), Some(owner.agent())).await;
    assert_eq!(
        result.single_text(),
        Some("bash-1 [bash] completed — pnpm test\nsubagent-1 [subagent] running — look it up")
    );
    let value = result.value.expect("a value");
    assert_eq!(value[0]["detail"], "exit code: 0");
    assert_eq!(value[1]["id"], "subagent-1");
    for withheld in ["owner", "reported"] {
        assert_eq!(value[0].get(withheld), None, "{withheld}");
    }
    let theirs = harness.call("task_list", json!({}), Some(other.agent())).await;
    assert_eq!(theirs, "subagent-1 [subagent] running — look it up");
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn t74_of_very_many_that_ended_the_list_shows_those_that_ended_last() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let list = async || harness.execute("task_list", json!({}), Some(owner.agent())).await;
    let end = async |task: HandTask| {
        task.settle(Outcome::completed());
        harness.terminal(&task.id, Some(owner.agent())).await;
        tokio::time::advance(Duration::from_millis(1)).await;
    };
    let long = Spec::owned_by(owner.agent()).start(&harness);
    let live = Spec::owned_by(owner.agent()).start(&harness);
    for _ in 3..=52 {
        end(Spec::owned_by(owner.agent()).start(&harness)).await;
    }
    let text = list().await.single_text().expect("a text").to_owned();
    assert_eq!(text.lines().count(), 52, "as many as are shown whole: {text}");

    end(long).await;
    let result = list().await;
    let shown: Vec<_> = [1, 2]
        .into_iter()
        .chain(4..=52)
        .map(|n| format!("bash-{n}"))
        .collect();
    let text = result.single_text().expect("a text");
    let (rows, last) = text.rsplit_once('\n').expect("lines");
    let rows = rows.lines().map(|row| row.split(' ').next().expect("an id"));
    assert_eq!(rows.collect::<Vec<_>>(), shown, "in the order of their start");
    assert_eq!(last, "(1 older ended task not shown)");
    let value = result.value.expect("a value");
    let ids = value
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| task["id"].as_str());
    assert_eq!(ids.flatten().collect::<Vec<_>>(), shown);

    end(live).await;
    let text = list().await.single_text().expect("a text").to_owned();
    assert!(text.ends_with("\n(2 older ended tasks not shown)"), "{text}");
    assert!(text.lines().count() == 51, "{text}");
}

#[tokio::test]
async fn t75_a_kill_is_acknowledged_at_once_and_its_reason_reaches_the_producer() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    let args = json!({ "task_id": "bash-1", "reason": "no longer needed" });
    let result = harness.execute("task_kill", args, None).await;
    assert_eq!(
        result.single_text(),
        Some("requested cancellation of task bash-1")
    );
    let value = result.value.expect("a value");
    assert_eq!(value["outcome"], "cancellation-requested");
    assert_eq!(value["task"]["status"], "stopping");
    assert_eq!(task.reasons(), [Some("no longer needed".to_owned())]);
}

#[tokio::test]
async fn t76_an_acknowledgement_keeps_its_limit_and_the_id() {
    let harness = Harness::new();
    let task = Spec {
        limit: Some(8),
        ..Spec::default()
    }
    .start(&harness);
    assert_eq!(
        harness
            .call("task_kill", json!({ "task_id": "bash-1" }), None)
            .await,
        "bash-1"
    );
    assert_eq!(task.reasons(), [None]);
}

#[tokio::test]
async fn t77_a_failing_cancel_is_an_error_within_the_limit_and_changes_nothing() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let cancel = Cancel::Fails("the work will not listen ".repeat(10));
    let task = Spec {
        limit: Some(64),
        owner: Some(owner.agent()),
        cancel,
        ..Spec::default()
    }
    .start(&harness);
    let result = harness
        .execute("task_kill", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    assert!(result.is_error);
    let text = result.single_text().expect("one text");
    assert!(
        text.starts_with("Error: the work will not") && text.len() <= 64,
        "{text}"
    );
    assert!(text.ends_with("[result truncated]"), "{text}");
    let snapshot = harness.tasks.get(&task.id, Some(owner.agent())).expect("known");
    assert_eq!((snapshot.status, snapshot.reported), (TaskStatus::Running, false));
    task.settle(Outcome::completed());
    assert!(!harness.announced(1).await[0].snapshot.reported);
}

#[tokio::test]
async fn t79_killing_a_finished_task_says_so_and_consumes_nothing() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    task.print("tail\n");
    task.settle(Outcome::killed().detail("signal: SIGTERM"));
    harness.terminal(&task.id, None).await;
    let result = harness
        .execute("task_kill", json!({ "task_id": "bash-1" }), None)
        .await;
    assert_eq!(
        result.single_text(),
        Some("task bash-1 had already finished [status: killed, signal: SIGTERM]")
    );
    assert_eq!(result.value.expect("a value")["outcome"], "already-finished");
    assert_eq!(
        harness.read(&task.id, None).await,
        "tail\n[status: killed, signal: SIGTERM]"
    );
    assert!(task.reasons().is_empty());
}

#[tokio::test]
async fn t80_a_kill_needs_an_id() {
    let harness = Harness::new();
    let text = harness.call("task_kill", json!({ "task_id": "" }), None).await;
    assert_eq!(
        text,
        r#"Error: invalid task_id: expected a non-empty string, got """#
    );
}

#[tokio::test]
async fn a_foreign_task_is_refused_and_its_limit_is_not_revealed() {
    let harness = Harness::new();
    let (owner, other) = (harness.agent("owner"), harness.agent("other"));
    let task = Spec {
        owner: Some(owner.agent()),
        limit: Some(1),
        ..Spec::default()
    }
    .start(&harness);
    for tool in ["task_output", "task_kill"] {
        for caller in [Some(other.agent()), None] {
            let text = harness.call(tool, json!({ "task_id": "bash-1" }), caller).await;
            assert_eq!(text, "Error: task bash-1 belongs to another session");
        }
    }
    assert!(task.reasons().is_empty());
}

#[tokio::test]
async fn t81_the_cards_name_the_task() {
    for (vocabulary, word) in [(Vocabulary::Task, "task"), (Vocabulary::Job, "job")] {
        let harness = Harness::with(vocabulary, ToolTasksConfig::default());
        let card_of = |tool: &str, id: &str| {
            let args = json!({ format!("{word}_id"): id });
            harness
                .tools
                .get(&format!("{word}_{tool}"))
                .expect("registered")
                .present_call(&args)
        };
        let card = |tool| card_of(tool, "bash-1");
        let generic = |title: String, kind, raw_input: Option<&str>| {
            Some(CallCard::Generic {
                title,
                kind,
                raw_input: raw_input.map(Into::into),
                content: Vec::new(),
            })
        };
        assert_eq!(
            card("output"),
            generic(
                format!("Read output from background {word} bash-1"),
                CardKind::Read,
                Some("bash-1")
            )
        );
        assert_eq!(
            card("list"),
            generic(format!("List background {word}s"), CardKind::Read, None)
        );
        assert_eq!(
            card("kill"),
            generic(
                format!("Kill background {word} bash-1"),
                CardKind::Execute,
                Some("bash-1")
            )
        );
        let (long, shown) = ("9".repeat(1_000_000), "9".repeat(200));
        assert_eq!(
            card_of("kill", &long),
            generic(
                format!("Kill background {word} {shown}"),
                CardKind::Execute,
                Some(&shown)
            ),
            "an id of any length is shown short"
        );
    }
}

#[tokio::test]
async fn no_tool_holds_back_another() {
    let harness = Harness::new();
    for definition in harness.tools.definitions() {
        let tool = harness.tools.get(&definition.name).expect("registered");
        assert_eq!(
            tool.concurrency(&json!({})),
            Concurrency::Parallel,
            "{}",
            definition.name
        );
    }
    let slow = Spec {
        source: Source::Final,
        ..Spec::default()
    }
    .start(&harness);
    let waiting = harness.call(
        "task_output",
        json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 60_000 }),
        None,
    );
    let beside = async {
        let list = harness.call("task_list", json!({}), None).await;
        slow.settle(Outcome::completed().output("late"));
        list
    };
    let (text, list) = tokio::join!(waiting, beside);
    assert_eq!(list, "bash-1 [bash] running — pnpm test");
    assert_eq!(text, "late\n[status: completed]");
}
