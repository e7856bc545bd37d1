//! The words of a deployment, one by one, and what is read back from its sentences.

use dsh_tasks::{Kind, Outcome, OutcomeStatus, TaskId, TaskStatus, TasksConfig, Vocabulary};

use crate::common::{Producer, Rig, settled};

#[test]
fn tools_and_parameters_are_named_in_the_words_of_the_deployment() {
    let names = [Vocabulary::Task, Vocabulary::Job].map(|words| {
        [
            words.word(),
            words.output_tool(),
            words.list_tool(),
            words.kill_tool(),
            words.id_param(),
        ]
    });
    assert_eq!(
        names,
        [
            ["task", "task_output", "task_list", "task_kill", "task_id"],
            ["job", "job_output", "job_list", "job_kill", "job_id"],
        ]
    );
}

#[test]
fn rows_that_a_list_leaves_out_are_counted() {
    let counted = [1, 2].map(|count| Vocabulary::Task.older_ended_not_shown(count));
    assert_eq!(
        counted,
        [
            "(1 older ended task not shown)",
            "(2 older ended tasks not shown)"
        ]
    );
}

#[tokio::test]
async fn an_end_is_read_back_from_its_notice() {
    let rig = Rig::new();
    let outcomes = [
        (Outcome::completed(), OutcomeStatus::Completed),
        (Outcome::killed().detail("signal: SIGTERM"), OutcomeStatus::Killed),
        (Outcome::failed().detail("a, b]. c"), OutcomeStatus::Failed),
    ];
    for (outcome, status) in outcomes {
        let producer = Producer::new();
        let id = rig.start(&producer, None);
        producer.settle(outcome.clone());
        settled().await;
        let notice = rig.tasks.vocabulary().notice(&rig.status(&id, None));
        let read = Vocabulary::end_in_notice(&notice).unwrap();
        assert_eq!((read.status(), &read), (status, &outcome), "{notice}");
    }
    let live =
        "background task bash-1 (bash: make) finished [status: running]. Read its output with task_output.";
    assert_eq!(Vocabulary::end_in_notice(live), None);
}

#[test]
fn a_status_is_an_outcome_by_its_word_if_it_is_one_of_an_end() {
    let ends = [Outcome::completed(), Outcome::killed(), Outcome::failed()];
    let words = ["completed", "killed", "failed"].map(|word| Outcome::with_word(word).unwrap());
    assert_eq!(words, ends);
    assert_eq!(
        ["running", "stopping", ""].map(Outcome::with_word),
        [None, None, None]
    );
}

#[test]
fn an_id_is_named_in_a_text_as_a_word_of_its_own() {
    let id = TaskId::from("bash-1");
    for text in [
        "started background task bash-1",
        "(bash-1)",
        "bash-1: ended",
        "see\nbash-1\n",
    ] {
        assert!(id.is_named_in(text), "{text}");
    }
    for text in ["", "bash-12", "bash-1_a", "my-bash-1", "bash 1", "xbash-1"] {
        assert!(!id.is_named_in(text), "{text}");
    }
}

#[test]
fn ids_kinds_and_statuses_are_written_as_they_are() {
    let (id, kind) = (
        TaskId::from("pty-send-3".to_owned()),
        Kind::new("pty-send").unwrap(),
    );
    assert_eq!((id.as_str(), kind.as_str()), ("pty-send-3", "pty-send"));
    assert_eq!(
        format!("{id} {kind} {}", TaskStatus::Stopping),
        "pty-send-3 pty-send stopping"
    );
}

#[test]
fn what_a_deployment_leaves_open_is_set() {
    let TasksConfig {
        max_concurrent_tasks_per_owner,
        retained_unowned,
        dispose_timeout,
        vocabulary,
        ..
    } = TasksConfig::default();
    assert_eq!(
        (
            max_concurrent_tasks_per_owner.get(),
            retained_unowned,
            dispose_timeout.as_secs(),
            vocabulary
        ),
        (10, 100, 30, Vocabulary::Task)
    );
}
