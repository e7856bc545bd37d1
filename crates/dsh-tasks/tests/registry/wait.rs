//! Waiting, also polled by hand where the exact wake-up matters.

use std::time::Duration;

use dsh_tasks::{Outcome, Serves, TaskStatus, WaitError};
use tokio_test::{assert_pending, assert_ready, task};
use tokio_util::sync::CancellationToken;

use crate::common::{Producer, Rig, settled};

const LONG: f64 = 600_000.0;

fn token() -> CancellationToken {
    CancellationToken::new()
}

#[tokio::test]
async fn t26_a_wait_gets_the_end_and_its_announcement_says_reported() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let token = token();
    let mut wait = task::spawn(rig.tasks.wait(&id, None, LONG, &token));
    assert_pending!(wait.poll());
    producer.settle(Outcome::completed());
    settled().await;
    assert!(wait.is_woken());
    let waited = assert_ready!(wait.poll()).unwrap();
    assert_eq!(
        (waited.snapshot.status, waited.snapshot.reported),
        (TaskStatus::Completed, true)
    );
    waited.claim.deliver();
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn t27_time_that_is_up_is_a_success_and_the_task_lives_on() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let waited = rig.tasks.wait(&id, None, 5.0, &token()).await.unwrap();
    assert_eq!(
        (waited.snapshot.status, waited.snapshot.reported),
        (TaskStatus::Running, false)
    );
    // That it was running is all that this told, so the end is still news.
    waited.claim.deliver();
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test(start_paused = true)]
async fn t27_the_time_is_in_milliseconds() {
    let rig = Rig::new();
    let id = rig.start(&Producer::new(), None);
    for (timeout, expected) in [(2_500.0, 2_500), (1.5, 2)] {
        let start = tokio::time::Instant::now();
        rig.tasks.wait(&id, None, timeout, &token()).await.unwrap();
        assert_eq!(start.elapsed().as_millis(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn t28_waits_that_ended_leave_nothing_behind() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    for _ in 0..3 {
        rig.tasks.wait(&id, None, 1.5, &token()).await.unwrap();
    }
    let aborted = token();
    let (result, ()) = tokio::join!(rig.tasks.wait(&id, None, LONG, &aborted), async {
        aborted.cancel();
    });
    assert_eq!(result.unwrap_err().to_string(), "wait aborted");
    assert_eq!(rig.status(&id, None).status, TaskStatus::Running);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(
        ends.reported(),
        [("bash-1".to_owned(), false)],
        "a claim left behind would hold it up"
    );
}

#[tokio::test]
async fn t29_a_task_that_has_ended_is_returned_at_once_whatever_the_token_says() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    let cancelled = token();
    cancelled.cancel();
    let waited = rig.tasks.wait(&id, None, 1.0, &cancelled).await.unwrap();
    assert_eq!(
        (waited.snapshot.status, waited.snapshot.reported),
        (TaskStatus::Completed, true)
    );
}

#[tokio::test]
async fn t30_errors_come_in_their_order() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let id = rig.start(&Producer::new(), Some(agent.agent()));
    let cancelled = token();
    cancelled.cancel();
    let owner = Some(agent.agent());
    let refused = async |id: &str, caller, timeout| {
        let waited = rig.tasks.wait(&id.into(), caller, timeout, &cancelled).await;
        waited.unwrap_err().to_string()
    };
    assert_eq!(refused("bash-9", None, 0.0).await, "unknown task bash-9");
    assert_eq!(
        refused("bash-1", None, 0.0).await,
        "task bash-1 belongs to another session"
    );
    let text = "invalid wait timeout: expected a positive number of milliseconds, got";
    let bad = [
        (0.0, "0"),
        (-5.0, "-5"),
        (f64::NAN, "null"),
        (f64::INFINITY, "null"),
        (-1.5, "-1.5"),
    ];
    for (timeout, written) in bad {
        assert_eq!(
            refused("bash-1", owner, timeout).await,
            format!("{text} {written}")
        );
    }
    assert_eq!(refused("bash-1", owner, 0.5).await, "wait aborted");
    assert_eq!(rig.status(&id, owner).status, TaskStatus::Running);
}

#[tokio::test]
async fn t31_an_abort_ends_only_the_wait() {
    let rig = Rig::new();
    let id = rig.start(&Producer::new(), None);
    let token = token();
    let mut wait = task::spawn(rig.tasks.wait(&id, None, LONG, &token));
    assert_pending!(wait.poll());
    token.cancel();
    assert!(wait.is_woken());
    assert!(matches!(assert_ready!(wait.poll()), Err(WaitError::Aborted)));
    assert_eq!(rig.status(&id, None).status, TaskStatus::Running);
    let again = rig.tasks.wait(&id, None, LONG, &token).await;
    assert!(matches!(again, Err(WaitError::Aborted)));
}

#[tokio::test]
async fn t32_abort_in_the_settling_tick_leaves_one_notice() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let token = token();
    let mut wait = task::spawn(rig.tasks.wait(&id, None, LONG, &token));
    assert_pending!(wait.poll());
    // The end is under way, the abort comes first.
    producer.settle(Outcome::completed());
    token.cancel();
    assert!(matches!(assert_ready!(wait.poll()), Err(WaitError::Aborted)));
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test]
async fn t33_an_abort_after_the_end_takes_nothing_from_the_wait() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let token = token();
    let mut wait = task::spawn(rig.tasks.wait(&id, None, LONG, &token));
    assert_pending!(wait.poll());
    producer.settle(Outcome::completed());
    settled().await;
    token.cancel();
    let waited = assert_ready!(wait.poll()).unwrap();
    assert_eq!(
        (waited.snapshot.status, waited.snapshot.reported),
        (TaskStatus::Completed, true)
    );
    waited.claim.deliver();
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
}

#[tokio::test]
async fn t33_an_abort_from_an_observer_of_the_end_takes_nothing_either() {
    let rig = Rig::new();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let (token, tasks, seen) = (token(), rig.tasks.clone(), id.clone());
    let aborted = token.clone();
    let observe = move |_: Option<&_>| {
        if tasks.get(&seen, None).unwrap().status.is_terminal() {
            aborted.cancel();
        }
    };
    rig.tasks.on_change(&rig.root, observe).unwrap();
    let wait = rig.tasks.wait(&id, None, LONG, &token);
    producer.settle(Outcome::completed());
    assert!(wait.await.unwrap().snapshot.status.is_terminal());
}

#[tokio::test]
async fn n1_a_wait_dropped_after_the_end_leaves_one_notice() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let token = token();
    let mut wait = task::spawn(rig.tasks.wait(&id, None, LONG, &token));
    assert_pending!(wait.poll());
    producer.settle(Outcome::completed());
    settled().await;
    assert!(wait.is_woken() && ends.all().is_empty());
    drop(wait);
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test]
async fn p7_a_result_that_never_reached_the_model_leaves_one_notice() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::stream();
    let id = rig.start(&producer, None);
    producer.write("the output");
    producer.settle(Outcome::completed());
    let waited = rig.tasks.wait(&id, None, LONG, &token()).await.unwrap();
    let read = rig.tasks.read(&id, None, 100).unwrap();
    settled().await;
    assert!(ends.all().is_empty());
    // What a tool pipeline does with an aborted, replaced or blocked result.
    drop((waited, read));
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
    assert_eq!(rig.tasks.read(&id, None, 100).unwrap().text, "the output");
}

#[tokio::test]
async fn p5_all_who_wait_get_the_end_and_one_delivery_is_enough() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let token = token();
    let wait = || rig.tasks.wait(&id, None, LONG, &token);
    let (first, second, third, ()) = tokio::join!(wait(), wait(), wait(), async {
        producer.settle(Outcome::completed());
    });
    drop(first);
    second.unwrap().claim.deliver();
    settled().await;
    assert!(ends.all().is_empty(), "the third may still tell");
    drop(third);
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn p4_time_and_end_due_together_agree_with_what_is_announced() {
    for _ in 0..20 {
        let rig = Rig::new();
        let ends = rig.ends();
        let producer = Producer::new();
        let id = rig.start(&producer, None);
        let token = token();
        let end = async {
            // sleep: paused clock, due together with the wait's own time.
            tokio::time::sleep(Duration::from_millis(5)).await;
            producer.settle(Outcome::completed());
        };
        let (waited, ()) = tokio::join!(rig.tasks.wait(&id, None, 5.0, &token), end);
        let waited = waited.unwrap();
        let told = waited.snapshot.status.is_terminal();
        waited.claim.deliver();
        settled().await;
        assert_eq!(ends.reported(), [("bash-1".to_owned(), told)]);
        rig.root.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_wait_without_end_is_released_by_the_disposal_of_its_owner() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(crate::common::OnCancel::Settle);
    let id = rig.start(&producer, Some(agent.agent()));
    let token = token();
    let wait = rig.tasks.wait(&id, Some(agent.agent()), f64::MAX, &token);
    let (waited, disposed) = tokio::join!(wait, agent.dispose());
    disposed.unwrap();
    let line = waited.unwrap().snapshot.status_line();
    assert_eq!(line, "[status: killed, owner disposed]");
    let gone = rig.tasks.read(&id, Some(agent.agent()), 1).unwrap_err();
    assert_eq!(gone.to_string(), "unknown task bash-1");
}

#[tokio::test]
async fn a_listener_may_use_the_registry() {
    let rig = Rig::new();
    let tasks = rig.tasks.clone();
    let next = Producer::new();
    let started = next.clone();
    let listen = move |done: dsh_tasks::TaskDone| -> dsh_tasks::BoxFuture<_> {
        if done.snapshot.id.as_str() == "bash-1" {
            let id = tasks.start(started.spec("bash", "next")).unwrap();
            tasks.kill(&id, None, None).unwrap().claim.deliver();
        }
        Box::pin(async { Ok(()) })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, listen).unwrap();
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(rig.status(&"bash-2".into(), None).status, TaskStatus::Stopping);
}
