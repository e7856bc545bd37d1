//! Settings, installing and uninstalling.

use crate::support::{Harness, Spec};
use dsh_scope::Scope;
use dsh_tasks::{Outcome, StartSpec, Vocabulary, Work};
use dsh_testkit::eventually;
use dsh_tool_tasks::{InstallError, ToolTasksConfig, install};
use serde_json::json;

fn idle() -> StartSpec {
    StartSpec::new("bash", "idle", || {
        Ok(Work::new(async { Outcome::completed() }, |_| Ok(())))
    })
}

fn config(text: serde_json::Value) -> Result<ToolTasksConfig, String> {
    serde_json::from_value(text).map_err(|error| error.to_string())
}

fn names(harness: &Harness) -> Vec<String> {
    harness
        .tools
        .definitions()
        .into_iter()
        .map(|definition| definition.name)
        .collect()
}

#[tokio::test]
async fn t58_installing_opens_the_fence_and_uninstalling_closes_it() {
    let harness = Harness::new();
    harness.tasks.start(idle()).expect("the fence is open");
    harness.handle.uninstall().await.expect("uninstalled");
    let refused = harness
        .tasks
        .start(idle())
        .expect_err("the fence is closed")
        .to_string();
    assert_eq!(
        refused,
        "background tasks unavailable: no control surface is attached (load dsh-tool-tasks)"
    );
    assert!(names(&harness).is_empty());
    assert!(harness.prompts.sections().is_empty());
}

#[tokio::test]
async fn tasks_run_on_while_the_tools_are_replaced() {
    let harness = Harness::new();
    let task = Spec::default().start(&harness);
    harness.handle.uninstall().await.expect("uninstalled");
    let again = install(&harness.scope, harness.deps(), ToolTasksConfig::default()).expect("installed again");
    task.print("still here\n");
    assert_eq!(
        harness.read(&task.id, None).await,
        "still here\n[status: running]"
    );
    assert!(task.reasons().is_empty());
    again.uninstall().await.expect("uninstalled");
}

#[tokio::test]
async fn a_refused_install_leaves_nothing() {
    let harness = Harness::new();
    harness.handle.uninstall().await.expect("uninstalled");
    let other = Scope::root("other");
    let blocker = install(&other, harness.deps(), ToolTasksConfig::default()).expect("installed");
    let before = names(&harness);
    let refused = install(&harness.scope, harness.deps(), ToolTasksConfig::default());
    assert!(matches!(
        refused.map(|_| ()),
        Err(InstallError::Section(_) | InstallError::Tool(_))
    ));
    assert_eq!(names(&harness), before);
    blocker.uninstall().await.expect("uninstalled");
    eventually("the refused install to be gone", || {
        harness.prompts.sections().is_empty()
    })
    .await;
    assert!(
        harness.tasks.start(idle()).is_err(),
        "the refused install attached no surface"
    );
    install(&harness.scope, harness.deps(), ToolTasksConfig::default()).expect("installed");
}

#[tokio::test]
async fn a_refused_setting_is_an_install_error() {
    let harness = Harness::new();
    harness.handle.uninstall().await.expect("uninstalled");
    let config = ToolTasksConfig {
        max_read_bytes: 0,
        ..ToolTasksConfig::default()
    };
    let refused = install(&harness.scope, harness.deps(), config)
        .map(|_| ())
        .expect_err("refused");
    assert!(matches!(refused, InstallError::Config(_)), "{refused}");
    assert!(names(&harness).is_empty());
}

#[test]
fn t59_a_default_wait_above_the_cap_is_refused() {
    let config = config(json!({ "wait_timeout_ms": 100, "max_wait_timeout_ms": 50 })).expect("well-formed");
    let error = config.validate().expect_err("refused").to_string();
    assert_eq!(
        error,
        "tool-tasks: wait_timeout_ms (100) exceeds max_wait_timeout_ms (50)"
    );
}

#[test]
fn every_problem_of_the_settings_is_reported() {
    let config = ToolTasksConfig {
        wait_timeout_ms: f64::NAN,
        max_wait_timeout_ms: 0.5,
        max_read_bytes: 0,
        ..ToolTasksConfig::default()
    };
    let error = config.validate().expect_err("refused");
    assert_eq!(
        error.problems(),
        [
            "tool-tasks: wait_timeout_ms (NaN) must be a number of milliseconds, at least 1",
            "tool-tasks: max_wait_timeout_ms (0.5) must be a number of milliseconds, at least 1",
            "tool-tasks: max_read_bytes (0) must be at least 1",
        ]
    );
}

#[test]
fn unknown_keys_and_wrong_types_are_refused() {
    let unknown = config(json!({ "wait_timeout": 5 })).expect_err("unknown");
    assert!(unknown.contains("unknown field `wait_timeout`"), "{unknown}");
    config(json!({ "wait_timeout_ms": "5" })).expect_err("no number");
    config(json!({ "serves": "everyone" })).expect_err("not for files");
    config(json!({ "wait_timeout_ms": 1.5 }))
        .expect("fractions are fine")
        .validate()
        .expect("valid");
}

#[tokio::test]
async fn t63_empty_settings_register_the_tools_and_open_the_fence() {
    let empty = config(json!({})).expect("well-formed");
    assert_eq!(
        (empty.wait_timeout_ms, empty.max_wait_timeout_ms),
        (30_000.0, 600_000.0)
    );
    let harness = Harness::with(Vocabulary::Task, empty);
    assert_eq!(names(&harness), ["task_kill", "task_list", "task_output"]);
    harness.tasks.start(idle()).expect("the fence is open");
}
