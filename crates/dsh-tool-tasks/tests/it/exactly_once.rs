//! A finished task is told to its owner exactly once, whatever becomes of the calls that wanted to tell it.

use crate::support::{Harness, Source, Spec, texts, told};
use std::sync::{Arc, Barrier};

use dsh_tasks::Outcome;
use dsh_testkit::eventually;
use serde_json::json;
use tokio_util::sync::CancellationToken;

const ENDED: &str = "[status: completed, exit code: 0]";

fn ended() -> Outcome {
    Outcome::completed().detail("exit code: 0")
}

fn wait_args() -> serde_json::Value {
    json!({ "task_id": "bash-1", "wait": true, "timeout_ms": 60_000 })
}

#[tokio::test]
async fn an_aborted_wait_leaves_the_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    let token = CancellationToken::new();
    let waiting = harness.execute_with("task_output", wait_args(), Some(owner.agent()), token.clone());
    let (result, ()) = tokio::join!(waiting, async { token.cancel() });
    assert_eq!(result.single_text(), Some("Error: tool call aborted"));
    assert!(result.deliveries.is_empty());
    assert!(task.reasons().is_empty(), "only the wait ended");
    task.settle(ended());
    harness.announced(1).await;
    assert_eq!(told(owner.agent()).len(), 1);
    assert!(told(owner.agent()).is_empty());
}

#[tokio::test]
async fn a_dropped_call_leaves_the_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    {
        let mut waiting = std::pin::pin!(harness.execute("task_output", wait_args(), Some(owner.agent())));
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
    }
    task.settle(ended());
    assert!(!harness.announced(1).await[0].snapshot.reported);
    assert_eq!(told(owner.agent()).len(), 1);
}

#[tokio::test]
async fn t32_an_abort_in_the_settling_tick_leaves_one_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    let token = CancellationToken::new();
    let waiting = harness.execute_with("task_output", wait_args(), Some(owner.agent()), token.clone());
    let racing = async {
        task.settle(ended());
        token.cancel();
    };
    let (result, ()) = tokio::join!(waiting, racing);
    assert_eq!(result.single_text(), Some("Error: tool call aborted"));
    drop(result);
    assert!(!harness.announced(1).await[0].snapshot.reported);
    assert_eq!(told(owner.agent()).len(), 1);
}

/// The abort comes once the end is already assigned to the waiter: the pipeline replaces the result, so the claim
/// goes back and the notice comes.
#[tokio::test]
async fn an_abort_after_the_end_leaves_one_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.print("precious\n");
    let token = CancellationToken::new();
    let mut waiting =
        Box::pin(harness.execute_with("task_output", wait_args(), Some(owner.agent()), token.clone()));
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it waits"),
        () = std::future::ready(()) => {}
    }
    task.settle(ended());
    harness.terminal(&task.id, Some(owner.agent())).await;
    token.cancel();
    let result = waiting.await;
    assert_eq!(result.single_text(), Some("Error: tool call aborted"));
    drop(result);
    assert!(!harness.announced(1).await[0].snapshot.reported);
    assert_eq!(told(owner.agent()).len(), 1);
    let text = harness.read(&task.id, Some(owner.agent())).await;
    assert_eq!(text, format!("precious\n{ENDED}"));
}

#[tokio::test]
async fn a_result_that_never_arrives_gives_back_output_and_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.print("precious\n");
    let waiting = harness.execute("task_output", wait_args(), Some(owner.agent()));
    let (result, ()) = tokio::join!(waiting, async { task.settle(ended()) });
    assert_eq!(result.single_text(), Some(format!("precious\n{ENDED}").as_str()));
    assert_eq!(owner.agent().inbox().pending(), 0, "claimed by the result");
    drop(result);
    harness.announced(1).await;
    assert_eq!(told(owner.agent()).len(), 1);
    let text = harness.read(&task.id, Some(owner.agent())).await;
    assert_eq!(text, format!("precious\n{ENDED}"));
    assert!(told(owner.agent()).is_empty());
}

#[tokio::test]
async fn a_read_that_comes_before_the_queued_notice_retracts_it() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.settle(ended());
    harness.announced(1).await;
    assert_eq!(owner.agent().inbox().pending(), 1);
    assert_eq!(
        harness.read(&task.id, Some(owner.agent())).await,
        format!("(no new output)\n{ENDED}")
    );
    assert_eq!(owner.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn a_read_whose_result_is_lost_shows_the_queued_notice_again() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.settle(ended());
    harness.announced(1).await;
    let result = harness
        .execute("task_output", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    assert_eq!(
        owner.agent().inbox().pending(),
        0,
        "hidden while the result is on its way"
    );
    drop(result);
    assert_eq!(told(owner.agent()).len(), 1);
    drop(task);
}

#[tokio::test]
async fn a_kill_that_comes_too_late_retracts_the_queued_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.settle(ended());
    harness.announced(1).await;
    let text = harness
        .call("task_kill", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    assert_eq!(text, format!("task bash-1 had already finished {ENDED}"));
    assert_eq!(owner.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn a_kill_whose_acknowledgement_is_lost_leaves_the_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    drop(
        harness
            .execute("task_kill", json!({ "task_id": "bash-1" }), Some(owner.agent()))
            .await,
    );
    task.settle(Outcome::killed().detail("signal: SIGTERM"));
    harness.announced(1).await;
    let notices = texts(&told(owner.agent()));
    assert_eq!(notices.len(), 1);
    assert!(
        notices[0].contains("finished [status: killed, signal: SIGTERM]"),
        "{}",
        notices[0]
    );
}

#[tokio::test]
async fn two_readers_of_one_task_lose_and_double_nothing() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.print("one\n");
    let first = harness
        .execute("task_output", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    task.print("two\n");
    let second = harness
        .execute("task_output", json!({ "task_id": "bash-1" }), Some(owner.agent()))
        .await;
    assert_eq!(first.single_text(), Some("one\n[status: running]"));
    assert_eq!(second.single_text(), Some("two\n[status: running]"));
    drop(first);
    second.deliveries.deliver_all();
    let text = harness.read(&task.id, Some(owner.agent())).await;
    assert_eq!(
        text, "one\n[status: running]",
        "what the lost reply had is read again, the rest is not"
    );
}

#[tokio::test]
async fn two_waiters_share_the_end_and_it_is_not_told_a_third_time() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let task = Spec::owned_by(owner.agent()).start(&harness);
    task.print("out\n");
    let waiting = || harness.execute("task_output", wait_args(), Some(owner.agent()));
    let (first, second, ()) = tokio::join!(waiting(), waiting(), async { task.settle(ended()) });
    let mut texts = [&first, &second].map(|result| result.single_text().unwrap_or_default().to_owned());
    texts.sort();
    assert_eq!(
        texts,
        [format!("(no new output)\n{ENDED}"), format!("out\n{ENDED}")]
    );
    drop(first);
    second.deliveries.deliver_all();
    eventually("the end to be announced", || {
        harness
            .tasks
            .get(&task.id, Some(owner.agent()))
            .is_ok_and(|snapshot| snapshot.reported)
    })
    .await;
    assert!(harness.announced(1).await[0].snapshot.reported);
    assert_eq!(owner.agent().inbox().pending(), 0);
}

#[tokio::test]
async fn a_wait_whose_read_fails_leaves_the_notice() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    let source = Source::Broken("disk on fire".to_owned());
    let task = Spec {
        owner: Some(owner.agent()),
        source,
        ..Spec::default()
    }
    .start(&harness);
    let waiting = harness.execute("task_output", wait_args(), Some(owner.agent()));
    let (result, ()) = tokio::join!(waiting, async { task.settle(ended()) });
    assert_eq!(result.single_text(), Some("Error: disk on fire"));
    result.deliveries.deliver_all();
    assert!(!harness.announced(1).await[0].snapshot.reported);
    assert_eq!(told(owner.agent()).len(), 1);
}

/// The end, the abort and the wait meet on three threads, in whatever order it happens: the model learns of the end
/// from the result or from the notice, never from both, never from neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_races_an_abort_is_told_once() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    for round in 1..=300 {
        let task = Spec::owned_by(owner.agent()).start(&harness);
        let token = CancellationToken::new();
        let args = json!({ "task_id": task.id.as_str(), "wait": true });
        let abort = token.clone();
        let gun = Arc::new(Barrier::new(2));
        let start = Arc::clone(&gun);
        let other = std::thread::spawn(move || {
            start.wait();
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            abort.cancel();
        });
        let racing = async {
            tokio::task::yield_now().await;
            gun.wait();
            task.settle(ended());
        };
        let waiting = harness.execute_with("task_output", args, Some(owner.agent()), token);
        let (result, ()) = tokio::join!(waiting, racing);
        other.join().expect("the aborting thread ends");
        let delivered = usize::from(!result.is_error);
        result.deliveries.deliver_all();
        let reported = harness.announced(round).await[round - 1].snapshot.reported;
        let notices = told(owner.agent()).len();
        assert_eq!(delivered + notices, 1, "round {round}");
        assert_eq!(reported, delivered == 1, "round {round}");
    }
}

/// The notice is on its way into the inbox while a read delivers the end: it is spent, whichever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notice_that_races_a_read_is_spent() {
    let harness = Harness::new();
    let owner = harness.agent("owner");
    for round in 1..=300 {
        let task = Arc::new(Spec::owned_by(owner.agent()).start(&harness));
        let settling = std::thread::spawn({
            let task = Arc::clone(&task);
            move || task.settle(ended())
        });
        while !harness.read(&task.id, Some(owner.agent())).await.ends_with(ENDED) {
            tokio::task::yield_now().await;
        }
        settling.join().expect("the settling thread ends");
        harness.announced(round).await;
        assert_eq!(owner.agent().inbox().pending(), 0, "round {round}");
        assert!(told(owner.agent()).is_empty(), "round {round}");
    }
}
