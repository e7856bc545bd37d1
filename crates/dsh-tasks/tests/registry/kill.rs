//! Asking for an end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dsh_tasks::{Cause, KillOutcome, Outcome, Survivor, TaskStatus};

use crate::common::{OnCancel, Producer, Rig, settled};

#[tokio::test]
async fn t23_a_kill_asks_marks_stopping_and_its_end_is_still_announced_as_reported() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let killed = rig.tasks.kill(&id, None, Some("no longer needed")).unwrap();
    assert_eq!(killed.outcome, KillOutcome::Requested);
    assert_eq!(producer.reasons(), ["no longer needed"]);
    assert_eq!(
        (killed.snapshot.status, killed.snapshot.reported),
        (TaskStatus::Stopping, true)
    );
    killed.claim.deliver();
    assert!(rig.status(&id, None).reported);
    producer.settle(Outcome::killed().detail("signal: SIGTERM"));
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
    let snapshot = rig.status(&id, None);
    assert_eq!(snapshot.status_line(), "[status: killed, signal: SIGTERM]");
    let asked = (snapshot.cause, snapshot.reason.as_deref());
    assert_eq!(asked, (Some(Cause::Caller), Some("no longer needed")));
}

#[tokio::test]
async fn t24_killing_what_has_finished_is_no_error() {
    let rig = Rig::new();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    producer.write("unread");
    producer.settle(Outcome::completed());
    settled().await;
    let killed = rig.tasks.kill(&id, None, None).unwrap();
    assert_eq!(killed.outcome, KillOutcome::AlreadyFinished);
    assert_eq!(
        rig.tasks.vocabulary().already_finished(&killed.snapshot),
        "task bash-1 had already finished [status: completed]"
    );
    killed.claim.deliver();
    assert!(rig.status(&id, None).reported && producer.reasons().is_empty());
    assert_eq!(rig.tasks.read(&id, None, 100).unwrap().text, "unread");
}

#[tokio::test]
async fn t25_a_cancel_that_fails_leaves_the_task_as_it_was() {
    let rig = Rig::new();
    let ends = rig.ends();
    let panics = OnCancel::Call(Arc::new(|_| panic!("cancel exploded")));
    let hooks = [
        (OnCancel::Throw("no such process"), "no such process"),
        (panics, "cancel exploded"),
    ];
    for (hook, text) in hooks {
        let producer = Producer::new().on_cancel(hook);
        let id = rig.start(&producer, None);
        assert_eq!(rig.tasks.kill(&id, None, None).unwrap_err().to_string(), text);
        let snapshot = rig.status(&id, None);
        assert_eq!((snapshot.status, snapshot.reported), (TaskStatus::Running, false));
        assert_eq!((snapshot.cause, snapshot.reason), (None, None));
        producer.settle(Outcome::completed());
        settled().await;
        let again = rig.tasks.kill(&id, None, None).unwrap();
        assert_eq!(again.outcome, KillOutcome::AlreadyFinished);
    }
    assert_eq!(
        ends.reported(),
        [("bash-1".to_owned(), false), ("bash-2".to_owned(), false)]
    );
}

#[tokio::test]
async fn p1_a_second_kill_asks_again() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    for reason in ["first", "second"] {
        let killed = rig.tasks.kill(&id, None, Some(reason)).unwrap();
        assert_eq!(killed.outcome, KillOutcome::Requested);
    }
    assert_eq!(producer.reasons(), ["first", "second"]);
    assert_eq!(rig.status(&id, None).status, TaskStatus::Stopping);
}

#[tokio::test]
async fn a_kill_that_fails_takes_nothing_from_one_that_was_accepted_meanwhile() {
    let rig = Rig::new();
    let (tasks, calls) = (rig.tasks.clone(), AtomicUsize::new(0));
    let producer = Producer::new().on_cancel(OnCancel::Call(Arc::new(move |_| {
        if calls.fetch_add(1, Ordering::Relaxed) == 0 {
            let accepted = tasks.kill(&"bash-1".into(), None, None).unwrap();
            accepted.claim.deliver();
            panic!("cancel exploded");
        }
    })));
    let id = rig.start(&producer, None);
    rig.tasks.kill(&id, None, None).unwrap_err();
    let snapshot = rig.status(&id, None);
    assert_eq!(
        (snapshot.status, snapshot.cause),
        (TaskStatus::Stopping, Some(Cause::Caller))
    );
}

#[tokio::test]
async fn a_killed_task_that_finished_by_itself_is_completed_and_no_news() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    rig.tasks.kill(&id, None, None).unwrap().claim.deliver();
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
}

#[tokio::test]
async fn a_kill_that_did_not_come_out_as_asked_is_news() {
    let rig = Rig::new();
    let ends = rig.ends();
    let survivor = Survivor {
        pid: 4242,
        command: "sleep".to_owned(),
    };
    let outcomes = [
        Outcome::killed()
            .detail("signal: SIGTERM")
            .survivors(vec![survivor]),
        Outcome::failed().detail("guard lost"),
    ];
    for outcome in outcomes {
        let producer = Producer::new();
        let id = rig.start(&producer, None);
        rig.tasks.kill(&id, None, None).unwrap().claim.deliver();
        producer.settle(outcome);
        settled().await;
    }
    assert_eq!(
        ends.reported(),
        [("bash-1".to_owned(), false), ("bash-2".to_owned(), false)]
    );
    let line = ends.all()[0].snapshot.status_line();
    assert_eq!(
        line,
        "[status: killed, signal: SIGTERM; 1 process survived: 4242 sleep]"
    );
}

#[tokio::test]
async fn a_kill_whose_answer_was_lost_leaves_one_notice() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let killed = rig.tasks.kill(&id, None, None).unwrap();
    producer.settle(Outcome::killed());
    settled().await;
    assert!(ends.all().is_empty(), "owed to who tells of the kill");
    drop(killed);
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_within_the_cancel_hook_does_not_become_stopping() {
    let rig = Rig::new();
    let ends = rig.ends();
    // The hook returns only when the registry has recorded the end.
    let tasks = rig.tasks.clone();
    let producer = Producer::new().on_cancel(OnCancel::Call(Arc::new(move |producer| {
        producer.settle(Outcome::killed());
        let is_over = || tasks.get(&"bash-1".into(), None).unwrap().status.is_terminal();
        tokio::task::block_in_place(|| {
            while !is_over() {
                std::thread::yield_now();
            }
        });
    })));
    let id = rig.start(&producer, None);
    let killed = rig.tasks.kill(&id, None, None).unwrap();
    assert_eq!(
        (killed.outcome, killed.snapshot.status),
        (KillOutcome::Requested, TaskStatus::Killed)
    );
    killed.claim.deliver();
    dsh_testkit::eventually("the announcement", || {
        ends.reported() == [("bash-1".to_owned(), true)]
    })
    .await;
}
