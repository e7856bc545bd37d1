//! The end of the registry, and the fence.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use dsh_tasks::{Outcome, Serves, StartError, StartSpec, TasksConfig, Vocabulary};
use dsh_testkit::LogCapture;

use crate::common::{OnCancel, Producer, Rig, is_pending, settled};

#[tokio::test]
async fn t46_disposal_cancels_waits_and_calls_no_listener() {
    let rig = Rig::new();
    let ends = rig.ends();
    let producer = Producer::new();
    rig.start(&producer, None);
    let close = rig.tasks.close();
    tokio::pin!(close);
    assert!(is_pending(close.as_mut()).await);
    assert_eq!(producer.reasons(), ["tasks service disposed"]);
    producer.settle(Outcome::killed());
    close.await;
    assert!(ends.all().is_empty() && rig.ids(None).is_empty());
}

#[tokio::test]
async fn t46_the_reason_speaks_the_other_vocabulary() {
    let rig = Rig::with(TasksConfig {
        vocabulary: Vocabulary::Job,
        ..TasksConfig::default()
    });
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&producer, None);
    rig.root.close().await.unwrap();
    assert_eq!(producer.reasons(), ["jobs service disposed"]);
}

#[tokio::test]
async fn t47_a_cancel_that_throws_does_not_hold_up_disposal() {
    let rig = Rig::new();
    let log = LogCapture::start();
    let ends = rig.ends();
    let producer = Producer::new().on_cancel(OnCancel::Throw("hook broken"));
    rig.start(&producer, None);
    rig.tasks.close().await;
    assert!(log.contains("tasks: cancel of bash-1 threw during teardown"));
    producer.settle(Outcome::completed());
    settled().await;
    assert!(ends.all().is_empty());
}

#[tokio::test]
async fn t48_a_disposed_registry_leaves_nothing_on_a_live_agent() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    rig.start(&producer, Some(agent.agent()));
    rig.tasks.close().await;
    assert_eq!(producer.reasons(), ["tasks service disposed"]);
    let weak = Arc::downgrade(agent.agent());
    agent.dispose().await.unwrap();
    assert_eq!(producer.reasons().len(), 1, "no cleanup was left to ask again");
    drop(agent);
    assert!(weak.upgrade().is_none(), "the registry keeps no agent alive");
}

#[tokio::test]
async fn t48_nor_does_it_leave_its_cleanup_on_the_agents_scope() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    for _ in 0..2 {
        let producer = Producer::new().on_cancel(OnCancel::Settle);
        rig.start(&producer, Some(agent.agent()));
    }
    rig.tasks.close().await;
    let log = LogCapture::start();
    // Scopes that are dropped without being closed name what they leak.
    rig.root.effect("left on purpose", || async {}).unwrap();
    agent
        .agent()
        .scope()
        .effect("left on purpose, too", || async {})
        .unwrap();
    drop((agent, rig));
    settled().await;
    assert!(log.contains("left on purpose, too"));
    assert!(!log.contains("tasks.ownerCleanup()"));
}

#[tokio::test]
async fn t49_what_a_scope_contributed_goes_with_it() {
    let rig = Rig::bare(TasksConfig::default());
    let preset = rig.root.child("preset").unwrap();
    let mount = rig.root.child("mount").unwrap();
    rig.tasks
        .attach_surface(&mount, "panel", Serves::Within(preset.clone()))
        .unwrap();
    let calls = Arc::new(Mutex::new(0));
    let seen = calls.clone();
    let listen = move |_| -> dsh_tasks::BoxFuture<_> {
        *seen.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    };
    rig.tasks
        .on_done(&mount, Serves::Within(preset.clone()), listen)
        .unwrap();
    let agent = rig.agent_within("a", &preset);
    let (first, second) = (Producer::new(), Producer::new());
    rig.start(&first, Some(agent.agent()));
    rig.start(&second, Some(agent.agent()));
    first.settle(Outcome::completed());
    settled().await;
    mount.close().await.unwrap();
    second.settle(Outcome::completed());
    settled().await;
    assert_eq!(*calls.lock().unwrap(), 1);
    let refused = rig.try_start(&Producer::new(), Some(agent.agent()));
    assert!(matches!(refused, Err(StartError::NoSurface(_))));
}

#[tokio::test]
async fn t49_listeners_are_called_from_outer_scopes_to_inner_ones() {
    let rig = Rig::new();
    let outer = rig.root.child("outer").unwrap();
    let inner = outer.child("inner").unwrap();
    let other = rig.root.child("other").unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let within = |scope: &dsh_scope::Scope| Serves::Within(scope.clone());
    let listeners = [
        ("inner", within(&inner)),
        ("outer", within(&outer)),
        ("other", within(&other)),
    ];
    for (name, serves) in listeners.into_iter().chain([("everyone", Serves::Everyone)]) {
        let order = order.clone();
        let listen = move |_| -> dsh_tasks::BoxFuture<_> {
            order.lock().unwrap().push(name);
            Box::pin(async { Ok(()) })
        };
        rig.tasks.on_done(&rig.root, serves, listen).unwrap();
    }
    let agent = rig.agent_within("a", &inner);
    let producer = Producer::new();
    rig.start(&producer, Some(agent.agent()));
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(*order.lock().unwrap(), ["everyone", "outer", "inner"]);
}

#[tokio::test]
async fn t50_every_surface_is_one_of_its_own() {
    let rig = Rig::bare(TasksConfig::default());
    let plugin = rig.root.child("plugin").unwrap();
    let attach = |name| rig.tasks.attach_surface(&plugin, name, Serves::Everyone).unwrap();
    let (first, second, _third) = (attach("a"), attach("a"), attach("b"));
    first.detach().await;
    first.detach().await;
    assert!(rig.try_start(&Producer::new(), None).is_ok());
    second.detach().await;
    let id = rig.start(&Producer::new(), None);
    plugin.close().await.unwrap();
    let refused = rig.try_start(&Producer::new(), None);
    assert!(matches!(refused, Err(StartError::NoSurface(_))));
    assert!(
        !rig.status(&id, None).status.is_terminal(),
        "work under way does not mind"
    );
}

#[tokio::test]
async fn p2_a_start_after_disposal_began_is_refused_in_its_own_words() {
    let rig = Rig::new();
    let slow = Producer::new();
    rig.start(&slow, None);
    let close = rig.tasks.close();
    tokio::pin!(close);
    assert!(is_pending(close.as_mut()).await);
    let text = "background tasks unavailable: the task registry is being disposed";
    let late = Producer::new();
    // Whatever else is wrong with it.
    let refused = |kind| rig.tasks.start(late.spec(kind, "l")).unwrap_err().to_string();
    assert_eq!(["bash", ""].map(refused), [text; 2]);
    slow.settle(Outcome::killed());
    close.await;
    assert_eq!(["bash", ""].map(refused), [text; 2]);
    assert_eq!(late.runs(), 0);
}

#[tokio::test]
async fn p2_a_start_is_refused_while_what_came_after_the_registry_is_still_closing() {
    let rig = Rig::new();
    let (gate, producer, tasks) = (dsh_testkit::Gate::new(), Producer::new(), rig.tasks.clone());
    let (opened, late) = (gate.clone(), producer.clone());
    let refusals = Arc::new(Mutex::new(Vec::new()));
    let seen = refusals.clone();
    let plugin = move || async move {
        let refused = |kind| tasks.start(late.spec(kind, "late")).unwrap_err().to_string();
        seen.lock().unwrap().extend(["bash", ""].map(refused));
        opened.opened().await;
    };
    rig.root.effect("plugin", plugin).unwrap();
    let close = rig.root.close();
    tokio::pin!(close);
    assert!(is_pending(close.as_mut()).await);
    let text = "background tasks unavailable: the task registry is being disposed";
    assert_eq!(*refusals.lock().unwrap(), [text; 2]);
    gate.open();
    close.await.unwrap();
    assert_eq!(producer.runs(), 0);
}

/// A producer whose `run` is under way in a thread of its own until the test lets it go on.
struct SlowStart {
    go_on: mpsc::Sender<()>,
    started: tokio::task::JoinHandle<Result<dsh_tasks::TaskId, StartError>>,
}

impl SlowStart {
    async fn begin(rig: &Rig, producer: &Producer) -> Self {
        let (go_on, wait) = mpsc::channel();
        let (tasks, producer) = (rig.tasks.clone(), producer.clone());
        let begun = dsh_testkit::Gate::new();
        let signal = begun.clone();
        let spec = StartSpec::new("bash", "slow to start", move || {
            signal.open();
            wait.recv()?;
            Ok(producer.work())
        });
        let started = tokio::task::spawn_blocking(move || tasks.start(spec));
        begun.opened().await;
        Self { go_on, started }
    }
}

#[tokio::test]
async fn a_start_under_way_when_disposal_begins_is_waited_for_and_cancelled_at_once() {
    let rig = Rig::new();
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let slow = SlowStart::begin(&rig, &producer).await;
    let close = rig.tasks.close();
    tokio::pin!(close);
    assert!(is_pending(close.as_mut()).await);
    slow.go_on.send(()).unwrap();
    close.await;
    assert_eq!(producer.reasons(), ["tasks service disposed"]);
    assert_eq!(slow.started.await.unwrap().unwrap().to_string(), "bash-1");
}

#[tokio::test]
async fn a_start_that_outlasts_the_bound_comes_too_late_and_is_cancelled() {
    let rig = Rig::with(TasksConfig {
        dispose_timeout: Duration::from_millis(20),
        ..TasksConfig::default()
    });
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let slow = SlowStart::begin(&rig, &producer).await;
    rig.tasks.close().await;
    slow.go_on.send(()).unwrap();
    assert!(matches!(slow.started.await.unwrap(), Err(StartError::TooLate(_))));
    assert_eq!(producer.reasons(), ["tasks service disposed"]);
    assert!(rig.ids(None).is_empty());
}

#[tokio::test]
async fn the_work_of_a_start_that_came_too_late_is_seen_to_its_end() {
    let rig = Rig::with(TasksConfig {
        dispose_timeout: Duration::from_millis(20),
        ..TasksConfig::default()
    });
    let agent = rig.agent("a");
    let (end, over) = (dsh_testkit::Gate::new(), dsh_testkit::Gate::new());
    let (ended, seen) = (end.clone(), over.clone());
    let begun = dsh_testkit::Gate::new();
    let (signal, (go_on, wait)) = (begun.clone(), mpsc::channel::<()>());
    let spec = StartSpec::new("bash", "slow to start", move || {
        signal.open();
        wait.recv()?;
        let done = async move {
            ended.opened().await;
            seen.open();
            Outcome::killed()
        };
        Ok(dsh_tasks::Work::new(done, |_| Ok(())))
    });
    let (tasks, spec) = (rig.tasks.clone(), spec.owned_by(agent.agent().clone()));
    let starting = tokio::task::spawn_blocking(move || tasks.start(spec));
    begun.opened().await;
    agent.dispose().await.unwrap();
    go_on.send(()).unwrap();
    assert!(matches!(starting.await.unwrap(), Err(StartError::TooLate(_))));
    end.open();
    let seen = tokio::time::timeout(Duration::from_secs(10), over.opened()).await;
    assert!(seen.is_ok(), "its future was dropped");
}

#[tokio::test]
async fn an_owner_that_ends_while_its_start_is_under_way_takes_the_task_with_it() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let (go_on, wait) = mpsc::channel::<()>();
    let (tasks, started) = (rig.tasks.clone(), producer.clone());
    let begun = dsh_testkit::Gate::new();
    let signal = begun.clone();
    let spec = StartSpec::new("bash", "slow to start", move || {
        signal.open();
        wait.recv()?;
        Ok(started.work())
    });
    let spec = spec.owned_by(agent.agent().clone());
    let starting = tokio::task::spawn_blocking(move || tasks.start(spec));
    begun.opened().await;
    let disposal = agent.dispose();
    tokio::pin!(disposal);
    assert!(is_pending(disposal.as_mut()).await);
    go_on.send(()).unwrap();
    disposal.await.unwrap();
    assert!(starting.await.unwrap().is_ok());
    assert_eq!(producer.reasons(), ["owner disposed"]);
    assert!(rig.ids(Some(agent.agent())).is_empty());
}

#[tokio::test(start_paused = true)]
async fn disposal_ends_in_time_whatever_a_producer_does() {
    let rig = Rig::new();
    rig.start(&Producer::new(), None);
    let start = tokio::time::Instant::now();
    rig.root.close().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn owner_and_registry_may_end_at_once() {
    let rig = Rig::new();
    let agent = rig.agent("a");
    let producer = Producer::new();
    rig.start(&producer, Some(agent.agent()));
    let end = async {
        settled().await;
        producer.settle(Outcome::killed());
    };
    let (disposed, (), ()) = tokio::join!(agent.dispose(), rig.tasks.close(), end);
    disposed.unwrap();
    let mut reasons = producer.reasons();
    reasons.sort();
    assert_eq!(reasons, ["owner disposed", "tasks service disposed"]);
}
