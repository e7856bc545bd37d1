//! A start whose answer has to reach who asked for it.

use dsh_tasks::{Cause, Outcome, TaskStatus};

use crate::common::{OnCancel, Producer, Rig, settled};

#[tokio::test]
async fn a_start_that_was_heard_of_goes_on() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let id = rig.start(&producer, Some(agent.agent()));
    rig.tasks.claim_start(&id, Some(agent.agent())).deliver();
    settled().await;
    assert!(producer.reasons().is_empty());
    assert_eq!(rig.status(&id, Some(agent.agent())).status, TaskStatus::Running);
}

#[tokio::test]
async fn a_start_that_nobody_heard_of_is_ended_and_its_end_is_news() {
    let rig = Rig::new();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let id = rig.start(&producer, Some(agent.agent()));
    drop(rig.tasks.claim_start(&id, Some(agent.agent())));
    settled().await;
    assert_eq!(producer.reasons(), ["the answer to its start was dropped"]);
    assert_eq!(rig.status(&id, Some(agent.agent())).cause, Some(Cause::Caller));
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test]
async fn a_start_that_has_ended_before_anybody_heard_of_it_is_news_once() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    let claim = rig.tasks.claim_start(&id, None);
    producer.settle(Outcome::completed());
    settled().await;
    drop(claim);
    settled().await;
    assert!(producer.reasons().is_empty());
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}
