//! Notices of a silence. The clock is paused and runs on by itself: no process is real.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use dsh_bash::ShellExit;
use dsh_output::Stream;
use dsh_session::MessageSource;
use dsh_tasks::{TaskId, TasksConfig, Vocabulary};
use dsh_testkit::Gate;
use dsh_tool_bash::ToolBashConfig;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::harness::{Harness, Setup};
use crate::played::{Played, Process, member, pass};

const CLEAN: ShellExit = ShellExit::Code(0);
const SILENT: Duration = Duration::from_secs(60);
/// One look later than a silence at the most.
const TOLD_BY: Duration = Duration::from_millis(68_000);
const NOTICE: &str = "background task bash-1 (bash: make) has printed nothing for 60000ms [status: running]. Read its \
                      output with task_output, or stop it with task_kill.";

fn setup(process: &Arc<Process>) -> Setup {
    let tool = ToolBashConfig {
        stall_notice_ms: NonZeroU64::new(60_000),
        ..ToolBashConfig::default()
    };
    Setup {
        tool,
        executor: Some(Arc::new(Played(Arc::clone(process)))),
        ..Setup::default()
    }
}

async fn started() -> (Harness, Arc<Process>, TaskId) {
    let process = Process::new();
    let harness = setup(&process).harness();
    let id = harness.background("make").await;
    (harness, process, id)
}

fn print(process: &Process, text: &str) {
    process.log.append(Stream::Stdout, text.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_told_once_and_again_after_output() {
    let (harness, process, _) = started().await;
    print(&process, "compiling\nlink\x1b[1ming\n");
    pass(SILENT).await;
    assert!(harness.news().is_empty(), "not before its time");
    pass(TOLD_BY - SILENT).await;
    let told = format!("{NOTICE}\nlast output:\n> linking");
    assert_eq!(harness.news(), [&*told]);
    pass(SILENT * 100).await;
    assert!(harness.news().is_empty(), "it is the same silence");
    for line in ["one", "two"] {
        print(&process, line);
        pass(TOLD_BY).await;
        assert_eq!(harness.news().len(), 1, "after {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn output_from_time_to_time_is_no_silence() {
    let (harness, process, _) = started().await;
    for _ in 0..20 {
        pass(SILENT - Duration::from_secs(1)).await;
        print(&process, ".");
        assert!(harness.news().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silence_that_ended_unread_is_no_news() {
    let (harness, process, _) = started().await;
    pass(TOLD_BY).await;
    assert_eq!(harness.owner.agent().inbox().pending(), 1);
    print(&process, "on we go\n");
    pass(Duration::from_millis(1)).await;
    assert!(harness.news().is_empty());
    pass(TOLD_BY).await;
    assert_eq!(harness.news(), [format!("{NOTICE}\nlast output:\n> on we go")]);
}

#[tokio::test(start_paused = true)]
async fn an_end_takes_its_notice_back_and_is_told_without_it() {
    let (harness, process, id) = started().await;
    pass(TOLD_BY).await;
    assert_eq!(harness.owner.agent().inbox().pending(), 1);
    process.end(CLEAN, Vec::new());
    assert_eq!(harness.ended(&id).await, "[status: completed, exit code: 0]");
    assert!(harness.news().is_empty());
    pass(SILENT * 10).await;
    assert!(harness.news().is_empty(), "never after the end");
}

#[tokio::test(start_paused = true)]
async fn a_kill_takes_its_notice_back_and_stopping_is_not_told_as_silence() {
    let (harness, process, id) = started().await;
    pass(TOLD_BY).await;
    harness.kill(&id);
    assert!(harness.news().is_empty(), "by the time the kill is answered");
    print(&process, "cleaning up");
    pass(SILENT * 10).await;
    assert_eq!(harness.task(&id).status_line(), "[status: stopping]");
    assert!(harness.news().is_empty());
    process.end(CLEAN, Vec::new());
    harness.ended(&id).await;
}

#[tokio::test(start_paused = true)]
async fn what_ran_into_its_deadline_is_not_silent() {
    let process = Process::new();
    let harness = setup(&process).harness();
    let args =
        json!({ "command": "make", "description": "x", "run_in_background": true, "timeoutMs": 70_000 });
    harness.call(args).await.deliveries.deliver_all();
    pass(Duration::from_secs(69)).await;
    assert_eq!(harness.owner.agent().inbox().pending(), 1);
    pass(Duration::from_secs(2)).await;
    assert!(process.asked().is_some());
    pass(SILENT * 10).await;
    assert!(harness.news().is_empty());
    process.end(CLEAN, Vec::new());
    harness.ended(&"bash-1".into()).await;
}

#[tokio::test(start_paused = true)]
async fn what_an_adopted_task_left_running_is_told_with_it() {
    let process = Process::new();
    let harness = setup(&process).harness();
    process.exit(CLEAN, vec![member(7, "server")]);
    let text = harness.foreground("make").await;
    assert!(text.contains("adopted as background task bash-1"), "{text}");
    pass(TOLD_BY).await;
    let told = NOTICE.replace(
        "running]",
        "running, shell exited with code 0, 1 process running]",
    );
    assert_eq!(harness.news(), [told]);
}

#[tokio::test(start_paused = true)]
async fn closed_output_and_nobodys_tasks_are_never_told() {
    let (harness, process, _) = started().await;
    process.log.close();
    let args = json!({ "command": "make", "description": "x", "run_in_background": true });
    let unowned = harness.call_for(None, args, CancellationToken::new()).await;
    unowned.deliveries.deliver_all();
    pass(SILENT * 10).await;
    assert!(harness.news().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_notice_is_of_its_own_kind_and_in_the_deployments_words() {
    let process = Process::new();
    let tasks = TasksConfig {
        vocabulary: Vocabulary::Job,
        ..TasksConfig::default()
    };
    let harness = Setup {
        tasks,
        ..setup(&process)
    }
    .harness();
    let args = json!({ "command": "make", "description": "x", "run_in_background": true });
    harness.call(args).await.deliveries.deliver_all();
    pass(TOLD_BY).await;
    let lease = harness.owner.agent().inbox().lease();
    let source = MessageSource::Plugin {
        plugin: "tool-bash".into(),
        form: "stall".into(),
        summary: "bash make silent for 60000ms".into(),
        subjects: vec!["bash-1".into()],
    };
    assert_eq!(lease.messages()[0].source, source);
    lease.commit();
    assert!(harness.owner.dispose().await.is_ok());
}

/// The paused clock jumps to the next timer whenever everybody waits. Without any it stands still, and nobody is woken.
async fn clock_moves() -> bool {
    let before = Instant::now();
    for _ in 0..50 {
        let gate = Gate::new();
        let other = gate.clone();
        let opener = std::thread::spawn(move || other.open());
        gate.opened().await;
        opener.join().unwrap();
    }
    Instant::now() > before
}

#[tokio::test(start_paused = true)]
async fn without_the_setting_and_after_a_notice_nobody_waits_for_a_time() {
    let process = Process::new();
    let off = Setup {
        tool: ToolBashConfig::default(),
        ..setup(&process)
    }
    .harness();
    off.background("make").await;
    assert!(!clock_moves().await, "off");
    let (on, ..) = started().await;
    assert!(clock_moves().await, "the output is looked at");
    pass(TOLD_BY).await;
    assert_eq!(on.news().len(), 1);
    assert!(!clock_moves().await, "told");
    assert!(off.news().is_empty());
}
