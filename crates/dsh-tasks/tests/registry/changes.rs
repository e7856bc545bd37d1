//! The change feed.

use dsh_tasks::Outcome;
use dsh_testkit::LogCapture;

use crate::common::{OnCancel, Producer, Rig, settled};

#[tokio::test]
async fn t51_a_start_a_kill_and_an_end_are_one_change_each() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let changes = rig.changes(&rig.root);
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    settled().await;
    assert_eq!(changes.all(), ["a"]);
    rig.tasks
        .kill(&id, Some(agent.agent()), None)
        .unwrap()
        .claim
        .deliver();
    settled().await;
    assert_eq!(changes.all(), ["a", "a"]);
    // It is stopping already.
    rig.tasks
        .kill(&id, Some(agent.agent()), None)
        .unwrap()
        .claim
        .deliver();
    settled().await;
    assert_eq!(changes.all(), ["a", "a"]);
    producer.settle(Outcome::killed());
    settled().await;
    assert_eq!(changes.all(), ["a", "a", "a"]);
}

#[tokio::test]
async fn t52_an_unowned_start_names_no_owner() {
    let rig = Rig::new();
    let changes = rig.changes(&rig.root);
    rig.start(&Producer::new(), None);
    settled().await;
    assert_eq!(changes.all(), ["-"]);
}

#[tokio::test]
async fn t53_an_owners_end_is_a_change_only_if_it_had_tasks() {
    let rig = Rig::new();
    let (a, b) = (rig.agent("a"), rig.agent("b"));
    let producer = Producer::new();
    rig.start(&producer, Some(a.agent()));
    producer.settle(Outcome::completed());
    settled().await;
    let changes = rig.changes(&rig.root);
    b.dispose().await.unwrap();
    settled().await;
    assert!(changes.all().is_empty());
    a.dispose().await.unwrap();
    settled().await;
    assert_eq!(changes.all(), ["a"]);
    assert!(rig.ids(Some(a.agent())).is_empty());
}

#[tokio::test]
async fn t54_an_observer_that_panics_is_logged_and_stops_nobody() {
    let rig = Rig::new();
    let log = LogCapture::start();
    rig.tasks
        .on_change(&rig.root, |_| panic!("observer exploded"))
        .unwrap();
    let changes = rig.changes(&rig.root);
    assert_eq!(rig.start(&Producer::new(), None).to_string(), "bash-1");
    settled().await;
    assert_eq!(changes.all(), ["-"]);
    assert!(log.contains("observer exploded"));
}

#[tokio::test]
async fn t55_an_observer_goes_with_its_handle_or_its_scope() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let plugin = rig.root.child("plugin").unwrap();
    let unexpected = |_: Option<&_>| panic!("was observed");
    let detached = rig.tasks.on_change(&rig.root, unexpected).unwrap();
    rig.tasks.on_change(&plugin, unexpected).unwrap();
    detached.detach().await;
    detached.detach().await;
    plugin.close().await.unwrap();
    rig.start(&Producer::new(), None);
    settled().await;
    assert!(!log.contains("was observed"));
}

#[tokio::test]
async fn t56_an_observer_sees_a_slow_end_from_stopping_to_gone() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    settled().await;
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (tasks, owner, log) = (rig.tasks.clone(), agent.agent().clone(), seen.clone());
    let observe = move |_: Option<&_>| {
        let status = tasks
            .get(&id, Some(&owner))
            .map_or("gone".to_owned(), |task| task.status.to_string());
        log.lock().unwrap().push(status);
    };
    rig.tasks.on_change(&rig.root, observe).unwrap();
    let end = async {
        settled().await;
        producer.settle(Outcome::killed());
    };
    let (disposed, ()) = tokio::join!(agent.dispose(), end);
    disposed.unwrap();
    settled().await;
    assert_eq!(*seen.lock().unwrap(), ["stopping", "killed", "gone"]);
}

#[tokio::test]
async fn t57_the_registrys_own_end_is_observed_to_the_last() {
    let rig = Rig::new();
    let outside = dsh_scope::Scope::root("outside");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&producer, None);
    settled().await;
    let changes = rig.changes(&outside);
    rig.root.close().await.unwrap();
    assert_eq!(changes.all(), ["-", "-", "-"], "stopping, ended, emptied");
    outside.close().await.unwrap();
}
