//! What a snapshot says, and that its parts agree.

use dsh_session::SessionId;
use dsh_tasks::{Cause, Kind, Outcome, Survivor, TaskId, TaskSnapshot, TaskStatus, TasksConfig, Vocabulary};

use crate::common::{OnCancel, Producer, Rig, coherent, settled};

fn snapshot(status: TaskStatus) -> TaskSnapshot {
    TaskSnapshot {
        id: TaskId::from("bash-1"),
        kind: Kind::new("bash").unwrap(),
        label: "pnpm test".into(),
        output_limit_bytes: None,
        owner: None,
        status,
        detail: None,
        live_detail: None,
        cause: None,
        reason: None,
        survivors: Vec::new(),
        started_at: 10,
        finished_at: status.is_terminal().then_some(10),
        reported: false,
        bytes: 0,
    }
}

#[tokio::test]
async fn a4_snapshots_of_live_and_ended_tasks_are_coherent() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producers = [Outcome::completed(), Outcome::killed(), Outcome::failed()].map(|outcome| {
        let producer = Producer::new();
        rig.start(&producer, Some(agent.agent()));
        (producer, outcome)
    });
    for task in rig.tasks.list(Some(agent.agent())) {
        assert_eq!(coherent(&task, Some(&SessionId::new("a"))), Ok(()));
    }
    for (producer, outcome) in producers {
        producer.settle(outcome);
    }
    settled().await;
    let ended = rig.tasks.list(Some(agent.agent()));
    assert_eq!(ended.len(), 3);
    for task in ended {
        assert!(task.status.is_terminal());
        assert_eq!(coherent(&task, Some(&SessionId::new("a"))), Ok(()));
    }
}

#[test]
fn a5_the_check_of_coherence_finds_every_contradiction() {
    let (live, ended) = (snapshot(TaskStatus::Running), snapshot(TaskStatus::Completed));
    let with = |of: &TaskSnapshot, change: fn(&mut TaskSnapshot)| {
        let mut snapshot = of.clone();
        change(&mut snapshot);
        coherent(&snapshot, None)
    };
    assert_eq!((coherent(&live, None), coherent(&ended, None)), (Ok(()), Ok(())));
    let contradictions: [fn(&mut TaskSnapshot); 7] = [
        |task| task.kind = Kind::new("sh").unwrap(),
        |task| task.id = "bash-0".into(),
        |task| task.id = "bash-x".into(),
        |task| task.label = "".into(),
        |task| {
            task.finished_at = if task.finished_at.is_some() {
                None
            } else {
                Some(10)
            }
        },
        |task| task.finished_at = Some(9),
        |task| task.owner = Some(SessionId::new("b")),
    ];
    for contradiction in contradictions {
        assert!(with(&live, contradiction).is_err());
        assert!(with(&ended, contradiction).is_err());
    }
    assert_eq!(Kind::new(""), None);
}

#[tokio::test(start_paused = true)]
async fn times_are_of_one_clock_that_never_goes_back() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    tokio::time::advance(std::time::Duration::from_millis(700)).await;
    producer.settle(Outcome::completed());
    settled().await;
    let task = rig.status(&id, None);
    assert_eq!(task.finished_at, Some(task.started_at + 700));
}

#[test]
fn t62_a_status_line_has_the_detail_or_nothing() {
    let mut task = snapshot(TaskStatus::Completed);
    assert_eq!(task.status_line(), "[status: completed]");
    task.detail = Some("exit code: 3".to_owned());
    assert_eq!(task.status_line(), "[status: completed, exit code: 3]");
    task.detail = Some("Error: line one\n  line two".to_owned());
    assert_eq!(
        task.status_line(),
        "[status: completed, Error: line one line two]"
    );
}

#[test]
fn a_live_detail_shows_in_the_status_line_and_in_the_row() {
    let mut task = snapshot(TaskStatus::Running);
    assert_eq!(task.list_line(), "bash-1 [bash] running — pnpm test");
    task.live_detail = Some("shell exited with code 0, 2 processes running".to_owned());
    assert_eq!(
        task.status_line(),
        "[status: running, shell exited with code 0, 2 processes running]"
    );
    assert_eq!(
        task.list_line(),
        "bash-1 [bash] running, shell exited with code 0, 2 processes running — pnpm test"
    );
}

#[test]
fn p9_a_label_of_many_lines_is_one_line_for_the_model() {
    let mut task = snapshot(TaskStatus::Completed);
    task.label = "for i in 1 2\ndo\n  echo $i\ndone".into();
    assert_eq!(
        task.list_line(),
        "bash-1 [bash] completed — for i in 1 2 do echo $i done"
    );
    let notice = Vocabulary::Task.notice(&task);
    assert_eq!(
        notice,
        "background task bash-1 (bash: for i in 1 2 do echo $i done) finished [status: completed]. Read its output \
         with task_output."
    );
    task.label = "x".repeat(300).into();
    assert_eq!(task.label_line().chars().count(), 200);
}

#[test]
fn a_silence_is_told_with_the_status_and_the_last_line() {
    let mut task = snapshot(TaskStatus::Running);
    task.label = "make\ntest".into();
    assert_eq!(
        Vocabulary::Task.silence(&task, 60_000, "linking"),
        "background task bash-1 (bash: make test) has printed nothing for 60000ms [status: running]. Read its output \
         with task_output, or stop it with task_kill.\nlast output:\n> linking"
    );
    assert_eq!(
        Vocabulary::Job.silence(&task, 700, ""),
        "background job bash-1 (bash: make test) has printed nothing for 700ms [status: running]. Read its output \
         with job_output, or stop it with job_kill."
    );
    assert_eq!(
        Vocabulary::Task.silence_summary(&task, 60_000),
        "bash make test silent for 60000ms"
    );
}

#[tokio::test]
async fn an_end_names_its_cause_where_that_is_news() {
    let rig = Rig::new();
    let survivors = ["sleep", "cat"].map(|command| Survivor {
        pid: 7,
        command: command.to_owned(),
    });
    let deadline = Outcome::killed()
        .detail("signal: SIGTERM")
        .cause(Cause::Deadline(700));
    let outcomes = [
        (
            deadline.clone(),
            "[status: killed, signal: SIGTERM; timed out after 700ms]",
        ),
        (
            deadline.survivors(survivors.to_vec()),
            "[status: killed, signal: SIGTERM; timed out after 700ms; 2 processes survived: 7 sleep, 7 cat]",
        ),
        (
            Outcome::killed().detail("signal: SIGKILL"),
            "[status: killed, signal: SIGKILL]",
        ),
    ];
    for (outcome, line) in outcomes {
        let producer = Producer::new();
        let id = rig.start(&producer, None);
        producer.settle(outcome.clone());
        settled().await;
        assert_eq!(rig.status(&id, None).status_line(), line);
    }
    let agent = rig.agent("a");
    let ends = rig.ends();
    let by_itself =
        Arc::new(|producer: &Producer| producer.settle(Outcome::completed().detail("exit code: 0")));
    let producer = Producer::new().on_cancel(OnCancel::Call(by_itself));
    rig.start(&producer, Some(agent.agent()));
    agent.dispose().await.unwrap();
    let line = ends.all()[0].snapshot.status_line();
    assert_eq!(
        line, "[status: completed, exit code: 0]",
        "it was not ended by its owner's disposal"
    );
}

use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn every_sentence_speaks_the_other_vocabulary() {
    let rig = Rig::with(TasksConfig {
        vocabulary: Vocabulary::Job,
        max_concurrent_tasks_per_owner: 1.try_into().unwrap(),
        ..TasksConfig::default()
    });
    let words = rig.tasks.vocabulary();
    let agent = rig.agent("a");
    let id = rig.start(&Producer::new(), Some(agent.agent()));
    let foreign = rig.tasks.get(&id, None).unwrap_err().to_string();
    assert_eq!(foreign, "job bash-1 belongs to another session");
    let unknown = rig
        .tasks
        .get(&"bash-2".into(), Some(agent.agent()))
        .unwrap_err()
        .to_string();
    assert_eq!(unknown, "unknown job bash-2 (your jobs: bash-1)");
    let full = rig
        .try_start(&Producer::new(), Some(agent.agent()))
        .unwrap_err()
        .to_string();
    assert_eq!(
        full,
        "background job limit reached for this owner (limit: 1); use job_kill to stop an unneeded job, wait for it to \
         finish, then retry (running: bash-1 for 0s)"
    );
    let task = snapshot(TaskStatus::Completed);
    let sentences = [
        words.started(&id),
        words.kill_requested(&id),
        words.already_finished(&task),
        words.empty_list(),
        words.registry_missing(),
        words.empty_id(),
        words.notice_summary(&task),
    ];
    assert_eq!(
        sentences,
        [
            "started background job bash-1",
            "requested cancellation of job bash-1",
            "job bash-1 had already finished [status: completed]",
            "(no background jobs)",
            "background jobs unavailable: load dsh-jobs and dsh-tool-jobs",
            "invalid job_id: expected a non-empty string, got \"\"",
            "bash pnpm test [status: completed]",
        ]
    );
}
