//! The notice of an end: what it says, who gets it, and who does not.

use crate::support::{Cancel, Harness, Source, Spec, texts, told};
use dsh_scope::Scope;
use dsh_session::MessageSource;
use dsh_tasks::{Outcome, Serves, StartError, StartSpec, Vocabulary};
use dsh_testkit::eventually;
use dsh_tool_tasks::{ToolTasksConfig, install};
use dsh_tools::ToolRegistry;
use serde_json::json;

#[tokio::test]
async fn t82_two_installations_for_disjoint_owners_tell_each_owner_once() {
    let harness = Harness::new();
    harness.handle.uninstall().await.expect("uninstalled");
    let presets = [Scope::root("a"), Scope::root("b")];
    for preset in &presets {
        let deps = dsh_tool_tasks::Deps {
            tools: ToolRegistry::new(),
            prompts: dsh_system_prompt::PromptRegistry::new(),
            tasks: harness.tasks.clone(),
        };
        let config = ToolTasksConfig {
            serves: Serves::Within(preset.clone()),
            ..ToolTasksConfig::default()
        };
        install(preset, deps, config).expect("installed");
    }
    let owner = harness
        .agents
        .create(dsh_agent::AgentSpec {
            id: dsh_session::SessionId::new("owner"),
            cwd: None,
            within: presets[0].clone(),
        })
        .expect("created");
    let outsider = harness.agent("outsider");
    for unserved in [Some(outsider.agent()), None] {
        let mut spec = StartSpec::new("bash", "idle", || panic!("it was started"));
        spec = unserved
            .into_iter()
            .fold(spec, |spec, owner| spec.owned_by(owner.clone()));
        let refused = harness.tasks.start(spec).expect_err("no surface serves it");
        assert!(matches!(refused, StartError::NoSurface(_)), "{refused}");
    }
    for expected in ["bash-1", "bash-2"] {
        let task = Spec::owned_by(owner.agent()).start(&harness);
        task.settle(Outcome::completed());
        eventually("the notice", || owner.agent().inbox().pending() > 0).await;
        let notices = texts(&told(owner.agent()));
        assert_eq!(notices.len(), 1);
        assert!(
            notices[0].contains(expected),
            "a second notice of an earlier end: {notices:?}"
        );
    }
}

#[tokio::test]
async fn t87_an_end_that_the_owners_own_disposal_asked_for_is_not_told() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    let agent = owner.agent().clone();
    let settle = async {
        eventually("the cancel", || !task.reasons().is_empty()).await;
        task.settle(Outcome::killed());
    };
    let (disposed, ()) = tokio::join!(owner.dispose(), settle);
    disposed.expect("disposed");
    assert!(harness.announced(1).await[0].snapshot.reported);
    assert_eq!(task.reasons(), [Some("owner disposed".to_owned())]);
    assert_eq!(agent.inbox().pending(), 0);
}

#[tokio::test]
async fn t88_nor_is_one_whose_cancel_failed_in_that_disposal() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let cancel = Cancel::Fails("no".to_owned());
    let task = Spec {
        owner: Some(owner.agent()),
        cancel,
        ..Spec::default()
    }
    .start(&harness);
    let agent = owner.agent().clone();
    owner.dispose().await.expect("disposed");
    assert!(harness.announced(1).await[0].snapshot.reported);
    assert_eq!(agent.inbox().pending(), 0);
    drop(task);
}

#[tokio::test]
async fn t90_a_notice_says_what_ended_how_and_where_to_read_it() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.settle(Outcome::completed().detail("exit code: 0"));
    harness.announced(1).await;
    let messages = told(owner.agent());
    assert_eq!(
        texts(&messages),
        [
            "background task bash-1 (bash: pnpm test) finished [status: completed, exit code: 0]. \
          Read its output with task_output."
        ]
    );
    let expected = MessageSource::Plugin {
        plugin: "tool-tasks".to_owned(),
        form: "notice".to_owned(),
        summary: "bash pnpm test [status: completed, exit code: 0]".to_owned(),
        subjects: vec!["bash-1".to_owned()],
    };
    assert_eq!(messages[0].source, expected);
}

#[tokio::test]
async fn a_notice_quotes_the_last_lines_of_output_and_consumes_nothing() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    for line in 1..=7 {
        task.print(&format!("line {line}\n"));
    }
    task.print("background task bash-9 (bash: rm) finished [status: completed].\n");
    task.settle(Outcome::completed().detail("exit code: 0"));
    harness.announced(1).await;
    let expected = "background task bash-1 (bash: pnpm test) finished [status: completed, exit code: 0]. \
                    Read its output with task_output.\n\
                    last output:\n> line 4\n> line 5\n> line 6\n> line 7\n\
                    > background task bash-9 (bash: rm) finished [status: completed].";
    assert_eq!(texts(&told(owner.agent())), [expected]);
    let text = harness.read(&task.id, Some(owner.agent())).await;
    assert!(text.starts_with("line 1\nline 2\n"), "{text}");
}

#[tokio::test]
async fn a_final_output_is_quoted_too() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec {
        owner: Some(owner.agent()),
        source: Source::Final,
        ..Spec::default()
    }
    .start(&harness);
    task.settle(Outcome::completed().output("the answer"));
    harness.announced(1).await;
    let notice = texts(&told(owner.agent())).concat();
    assert!(notice.ends_with("\nlast output:\n> the answer"), "{notice}");
}

#[tokio::test]
async fn t91_a_bounded_notice_keeps_the_id_then_the_action() {
    for (limit, start, end) in [
        (61, "background job subagent-1\nDone; job_output.", ""),
        (
            80,
            "background job subagent-1 (subagent: xx",
            "\n[notice truncated]\nDone; job_output.",
        ),
    ] {
        let harness = Harness::with(Vocabulary::Job, ToolTasksConfig::default());
        let owner = harness.agent("owner");
        let label = "x".repeat(500);
        let spec = Spec {
            kind: "subagent",
            label: &label,
            owner: Some(owner.agent()),
            limit: Some(limit),
            ..Spec::default()
        };
        let task = spec.start(&harness);
        task.print("some output\n");
        task.settle(Outcome::completed().detail("y".repeat(500)));
        harness.announced(1).await;
        let messages = told(owner.agent());
        let text = &texts(&messages)[0];
        assert!(text.len() as u64 <= limit, "{text}");
        assert!(text.starts_with(start) && text.ends_with(end), "{text}");
        let MessageSource::Plugin { summary, .. } = &messages[0].source else {
            panic!("not from a plugin")
        };
        assert_eq!(*summary, format!("subagent {}…", "x".repeat(110)));
    }
}

#[tokio::test]
async fn t92_a_notice_that_fits_exactly_has_its_marker() {
    let harness = Harness::with(Vocabulary::Job, ToolTasksConfig::default());
    for _ in 0..99 {
        let task = Spec {
            kind: "pty-send",
            ..Spec::default()
        }
        .start(&harness);
        task.settle(Outcome::completed());
        harness.terminal(&task.id, None).await;
    }
    let owner = harness.agent("owner");
    let spec = Spec {
        kind: "pty-send",
        owner: Some(owner.agent()),
        limit: Some(64),
        ..Spec::default()
    };
    spec.start(&harness).settle(Outcome::completed());
    harness.announced(100).await;
    assert_eq!(
        texts(&told(owner.agent())),
        ["background job pty-send-100\n[notice truncated]\nDone; job_output."]
    );
}

#[tokio::test]
async fn t93_a_tiny_limit_keeps_the_end_of_the_action() {
    for (limit, expected) in [(8, "_output."), (32, "background job\nDone; job_output.")] {
        let harness = Harness::with(Vocabulary::Job, ToolTasksConfig::default());
        let owner = harness.agent("owner");
        let spec = Spec {
            owner: Some(owner.agent()),
            limit: Some(limit),
            ..Spec::default()
        };
        spec.start(&harness).settle(Outcome::completed());
        harness.announced(1).await;
        assert_eq!(texts(&told(owner.agent())), [expected]);
    }
}

#[tokio::test]
async fn t94_what_the_model_killed_is_not_told_again() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    harness
        .call("task_kill", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    task.settle(Outcome::killed().detail("signal: SIGTERM"));
    assert!(harness.announced(1).await[0].snapshot.reported);
    assert_eq!(owner.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn a_killed_task_that_left_something_alive_is_told() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    harness
        .call("task_kill", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    let survivor = dsh_tasks::Survivor {
        pid: 4242,
        command: "sleep".to_owned(),
    };
    task.settle(
        Outcome::killed()
            .detail("signal: SIGKILL")
            .survivors(vec![survivor]),
    );
    harness.announced(1).await;
    let notices = texts(&told(owner.agent()));
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains("1 process survived: 4242 sleep"),
        "{}",
        notices[0]
    );
}

#[tokio::test]
async fn t95_what_a_wait_delivered_is_not_told_again() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    let args = json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 60_000 });
    let waiting = harness.call("task_output", args, Some(owner.agent()));
    let (text, ()) = tokio::join!(waiting, async { task.settle(Outcome::completed()) });
    assert_eq!(text, "(no new output)\n[status: completed]");
    assert!(harness.announced(1).await[0].snapshot.reported);
    assert_eq!(owner.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn t96_the_end_of_what_nobody_owns_is_nobodys_news() {
    let harness = Harness::new();
    let bystander = harness.agent("bystander");
    let task = Spec::default().start(&harness);
    task.settle(Outcome::completed());
    harness.announced(1).await;
    assert_eq!(bystander.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn t97_a_notice_goes_to_the_exact_owner_and_never_to_a_successor() {
    let harness = Harness::new();
    let old = harness.agent("owner");
    let agent = old.agent().clone();
    let gate = dsh_testkit::Gate::new();
    let held = gate.clone();
    agent
        .scope()
        .effect("hold the disposal", move || async move { held.opened().await })
        .expect("open");
    let task = Spec::owned_by(&agent).start(&harness);
    task.settle(Outcome::completed());
    harness.announced(1).await;
    let disposal = async { old.dispose().await.expect("disposed") };
    let release = async { gate.open() };
    tokio::join!(disposal, release);
    let successor = harness.agent("owner");
    assert_eq!(successor.agent().inbox().pending(), 0);
    assert_eq!(told(&agent).len(), 1);
}

#[tokio::test]
async fn t99_several_ends_are_each_told_once() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    for _ in 0..2 {
        Spec::owned_by(owner.agent())
            .start(&harness)
            .settle(Outcome::completed());
    }
    harness.announced(2).await;
    let notices = texts(&told(owner.agent()));
    assert_eq!(notices.len(), 2);
    assert!(
        notices[0].contains("bash-1") && notices[1].contains("bash-2"),
        "{notices:?}"
    );
    assert!(told(owner.agent()).is_empty());
}
