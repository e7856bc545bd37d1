//! What happens to an owner's tasks when it ends.

use std::{sync::Arc, time::Duration};

use dsh_tasks::{Outcome, TaskStatus, TasksConfig};
use dsh_testkit::LogCapture;

use crate::common::{OnCancel, Producer, Rig, is_pending, settled};

#[tokio::test]
async fn t39_an_owners_end_cancels_what_is_live_and_drops_all() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let (live, finished) = (Producer::new().on_cancel(OnCancel::Settle), Producer::new());
    let id = rig.start(&live, Some(agent.agent()));
    rig.start(&finished, Some(agent.agent()));
    finished.settle(Outcome::completed());
    settled().await;
    agent.dispose().await.unwrap();
    assert_eq!(live.reasons(), ["owner disposed"]);
    assert!(finished.reasons().is_empty() && rig.ids(Some(agent.agent())).is_empty());
    let gone = rig.tasks.get(&id, Some(agent.agent())).unwrap_err();
    assert_eq!(gone.to_string(), "unknown task bash-1");
}

#[tokio::test]
async fn t40_waits_then_observers_then_listeners_learn_of_an_end() {
    let rig = Rig::new();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, tasks) = (order.clone(), rig.tasks.clone());
    let producer = Producer::new();
    let id = rig.start(&producer, None);
    settled().await;
    let observed = id.clone();
    rig.tasks
        .on_change(&rig.root, move |_| {
            let status = tasks.get(&observed, None).unwrap().status;
            seen.lock().unwrap().push(format!("changed: {status}"));
        })
        .unwrap();
    let seen = order.clone();
    rig.tasks
        .on_done(&rig.root, dsh_tasks::Serves::Everyone, move |done| {
            seen.lock()
                .unwrap()
                .push(format!("done: {}", done.snapshot.status));
            Box::pin(async { Ok(()) })
        })
        .unwrap();
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(*order.lock().unwrap(), ["changed: completed", "done: completed"]);
}

#[tokio::test]
async fn t41_an_end_by_the_owners_disposal_is_announced_once_as_reported() {
    let rig = Rig::new();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&producer, Some(agent.agent()));
    agent.dispose().await.unwrap();
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
    assert_eq!(
        ends.all()[0].snapshot.status_line(),
        "[status: killed, owner disposed]"
    );
}

#[tokio::test]
async fn t41_a_claim_nobody_ends_holds_up_no_disposal() {
    let rig = Rig::new();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    let killed = rig.tasks.kill(&id, Some(agent.agent()), None).unwrap();
    producer.settle(Outcome::killed());
    settled().await;
    assert!(ends.all().is_empty(), "owed to who tells of the kill");
    agent.dispose().await.unwrap();
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
    drop(killed);
    settled().await;
    assert_eq!(ends.all().len(), 1);
}

#[tokio::test]
async fn t42_two_starts_of_one_owner_have_one_cleanup() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let agent = rig.agent("a");
    let producers = [Producer::new(), Producer::new()].map(|producer| producer.on_cancel(OnCancel::Settle));
    for producer in &producers {
        rig.start(producer, Some(agent.agent()));
    }
    agent.dispose().await.unwrap();
    for producer in &producers {
        assert_eq!(
            producer.reasons(),
            ["owner disposed"],
            "a second cleanup would ask again"
        );
    }
    assert!(rig.ids(Some(agent.agent())).is_empty());
    assert!(!log.contains("orphaned"));
}

#[tokio::test]
async fn t43_the_end_of_an_old_instance_leaves_its_replacements_tasks_alone() {
    let rig = Rig::new();
    let old = rig.agent("a");
    let first = Producer::new();
    rig.start(&first, Some(old.agent()));
    let disposal = old.dispose();
    tokio::pin!(disposal);
    assert!(
        is_pending(disposal.as_mut()).await,
        "it does not wait for its task"
    );
    // The id is free only when the old one's tasks have ended.
    let spec = dsh_agent::AgentSpec {
        id: dsh_session::SessionId::new("a"),
        cwd: None,
        within: rig.root.clone(),
    };
    assert!(rig.agents.create(spec).is_err());
    first.settle(Outcome::killed());
    disposal.await.unwrap();
    let new = rig.agent("a");
    let second = Producer::new().on_cancel(OnCancel::Settle);
    let id = rig.start(&second, Some(new.agent()));
    old.dispose().await.unwrap();
    assert_eq!(rig.status(&id, Some(new.agent())).status, TaskStatus::Running);
    new.dispose().await.unwrap();
    assert_eq!(second.reasons(), ["owner disposed"]);
}

#[tokio::test]
async fn t44_the_cleanup_is_the_owners_and_the_registry_stays() {
    let rig = Rig::new();
    let plugin = rig.root.child("plugin").unwrap();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&producer, Some(agent.agent()));
    plugin.close().await.unwrap();
    assert!(producer.reasons().is_empty());
    agent.dispose().await.unwrap();
    assert_eq!(producer.reasons(), ["owner disposed"]);
    let other = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&other, None);
    rig.tasks.close().await;
    assert_eq!(other.reasons(), ["tasks service disposed"]);
}

#[tokio::test]
async fn t45_a_cancel_that_throws_in_a_disposal_ends_the_record_at_once() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Throw("hook broken"));
    rig.start(&producer, Some(agent.agent()));
    agent.dispose().await.unwrap();
    assert_eq!(ends.reported(), [("bash-1".to_owned(), true)]);
    let snapshot = ends.all()[0].snapshot.clone();
    assert_eq!(snapshot.status, TaskStatus::Failed);
    let detail = "cancel threw during teardown; work may be orphaned: hook broken";
    assert_eq!(snapshot.detail.as_deref(), Some(detail));
    assert!(log.contains(
        "tasks: cancel of bash-1 threw during teardown; task record forced failed and work may be orphaned: hook broken"
    ));
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(ends.all().len(), 1);
    assert!(rig.ids(Some(agent.agent())).is_empty());
}

#[tokio::test(start_paused = true)]
async fn p11_a_task_that_never_ends_is_given_up_in_time_and_says_what_is_known_of_it() {
    let rig = Rig::with(TasksConfig {
        dispose_timeout: Duration::from_millis(1500),
        ..TasksConfig::default()
    });
    let log = LogCapture::start();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let deaf = producer.clone();
    let spec = dsh_tasks::StartSpec::new("bash", "deaf", move || {
        let survivor = || dsh_tasks::Survivor {
            pid: 4242,
            command: "sleep".to_owned(),
        };
        let work = deaf.work().survivors(move || vec![survivor()]);
        Ok(work.live_detail(|| Some("1 process running".to_owned())))
    });
    rig.tasks.start(spec.owned_by(agent.agent().clone())).unwrap();
    let start = tokio::time::Instant::now();
    agent.dispose().await.unwrap();
    assert_eq!(start.elapsed().as_millis() / 100, 15);
    assert_eq!(
        ends.all()[0].snapshot.status_line(),
        "[status: failed, did not end within 1.5s of its teardown; work may be orphaned: 1 process running; \
         1 process survived: 4242 sleep]"
    );
    assert!(log.contains("tasks: bash-1 did not end within 1.5s of its teardown"));
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(ends.all().len(), 1);
}

#[tokio::test]
async fn p10_a_task_that_is_being_torn_down_is_stopping_and_reported() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    let disposal = agent.dispose();
    tokio::pin!(disposal);
    assert!(
        is_pending(disposal.as_mut()).await,
        "it does not wait for its task"
    );
    let snapshot = rig.status(&id, Some(agent.agent()));
    assert_eq!((snapshot.status, snapshot.reported), (TaskStatus::Stopping, true));
    producer.settle(Outcome::killed());
    disposal.await.unwrap();
}

/// What is told of a task whose work a newer effect of its owner takes down with this outcome, before the cleanup.
async fn taken_down(outcome: Outcome, killed_before: bool) -> (String, bool) {
    let rig = Rig::new();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    if killed_before {
        let killed = rig.tasks.kill(&id, Some(agent.agent()), None).unwrap();
        killed.claim.deliver();
    }
    let work = producer.clone();
    let release = move || async move {
        work.settle(outcome);
        settled().await;
    };
    agent.agent().scope().effect("work", release).unwrap();
    agent.dispose().await.unwrap();
    let asked = usize::from(killed_before);
    assert_eq!(producer.reasons().len(), asked, "it had ended before the cleanup");
    let ends = ends.all();
    assert_eq!(ends.len(), 1, "it ends once");
    let end = &ends[0];
    (end.snapshot.status_line(), end.snapshot.reported)
}

#[tokio::test]
async fn work_that_its_owners_end_kills_before_the_cleanup_has_that_cause() {
    let told = |line: &str, reported| (line.to_owned(), reported);
    assert_eq!(
        taken_down(Outcome::killed(), false).await,
        told("[status: killed, owner disposed]", true),
    );
    assert_eq!(
        taken_down(Outcome::killed(), true).await,
        told("[status: killed]", true),
        "the first to ask stays"
    );
    assert_eq!(
        taken_down(Outcome::completed(), false).await,
        told("[status: completed]", false),
        "it ended by itself"
    );
}
