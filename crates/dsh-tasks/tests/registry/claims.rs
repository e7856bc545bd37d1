//! An end is told once: by who holds a claim, or by the notice in the owner's inbox.

use std::sync::Arc;

use dsh_agent::{Agent, Notice};
use dsh_session::{Message, MessageSource};
use dsh_tasks::{Outcome, Serves, TaskDone, TasksConfig};

use crate::common::{Producer, Rig, settled};

/// Queues a notice as a control surface does.
pub(crate) fn notify(rig: &Rig) {
    let words = rig.tasks.vocabulary();
    let listen = move |done: TaskDone| -> dsh_tasks::BoxFuture<_> {
        if let Some(owner) = done.owner.as_ref().filter(|_| !done.snapshot.reported) {
            let source = MessageSource::Plugin {
                plugin: "test".to_owned(),
                form: "notice".to_owned(),
                summary: words.notice_summary(&done.snapshot),
                subjects: Vec::new(),
            };
            let content = vec![dsh_llm::ContentBlock::text(words.notice(&done.snapshot))];
            owner.inbox().inject(Notice {
                key: done.notice_key(),
                message: Message { content, source },
            });
        }
        Box::pin(async { Ok(()) })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, listen).unwrap();
}

fn notices(agent: &Arc<Agent>) -> usize {
    agent.inbox().pending()
}

#[tokio::test]
async fn a_read_takes_back_a_notice_that_nobody_has_seen() {
    let rig = Rig::new();
    notify(&rig);
    let agent = rig.agent("a");
    let owner = agent.agent();
    let producer = Producer::new();
    let id = rig.start(&producer, Some(owner));
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(notices(owner), 1);
    let read = rig.tasks.read(&id, Some(owner), 1).unwrap();
    assert_eq!(notices(owner), 0, "hidden while the read is under way");
    drop(read);
    assert_eq!(notices(owner), 1, "and back when it came to nothing");
    let killed = rig.tasks.kill(&id, Some(owner), None).unwrap();
    assert_eq!(notices(owner), 0);
    killed.claim.deliver();
    assert_eq!(notices(owner), 0);
    settled().await;
    assert!(owner.inbox().lease().is_empty());
}

#[tokio::test]
async fn a_notice_on_its_way_is_refused_when_the_end_was_told_before_it_came() {
    let rig = Rig::new();
    let gate = dsh_testkit::Gate::new();
    let (opened, words) = (gate.clone(), rig.tasks.vocabulary());
    let slow = move |done: TaskDone| -> dsh_tasks::BoxFuture<_> {
        let opened = opened.clone();
        Box::pin(async move {
            opened.opened().await;
            let source = MessageSource::Plugin {
                plugin: "test".to_owned(),
                form: "notice".to_owned(),
                summary: String::new(),
                subjects: Vec::new(),
            };
            let content = vec![dsh_llm::ContentBlock::text(words.notice(&done.snapshot))];
            let key = done.notice_key();
            let message = Message { content, source };
            done.owner.unwrap().inbox().inject(Notice { key, message });
            Ok(())
        })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, slow).unwrap();
    let agent = rig.agent("a");
    let owner = agent.agent();
    let producers = [Producer::new(), Producer::new()];
    let ids = producers
        .each_ref()
        .map(|producer| rig.start(producer, Some(owner)));
    for producer in &producers {
        producer.settle(Outcome::completed());
    }
    settled().await;
    rig.tasks.read(&ids[0], Some(owner), 1).unwrap().claim.deliver();
    gate.open();
    settled().await;
    let lease = owner.inbox().lease();
    assert_eq!(lease.messages().len(), 1, "the second one's only");
    lease.commit();
}

#[tokio::test]
async fn a_notice_that_never_comes_leaves_nothing_in_the_inbox() {
    let rig = Rig::new();
    let gate = dsh_testkit::Gate::new();
    let (opened, key) = (gate.clone(), Arc::new(std::sync::Mutex::new(None)));
    let seen = key.clone();
    let slow = move |done: TaskDone| -> dsh_tasks::BoxFuture<_> {
        *seen.lock().unwrap() = Some(done.notice_key());
        let opened = opened.clone();
        Box::pin(async move {
            opened.opened().await;
            Ok(())
        })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, slow).unwrap();
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    producer.settle(Outcome::completed());
    settled().await;
    rig.tasks
        .read(&id, Some(agent.agent()), 1)
        .unwrap()
        .claim
        .deliver();
    gate.open();
    settled().await;
    let message = Message {
        content: Vec::new(),
        source: MessageSource::User,
    };
    let key = key.lock().unwrap().clone().unwrap();
    agent.agent().inbox().inject(Notice { key, message });
    assert_eq!(notices(agent.agent()), 1, "a tombstone would have refused it");
}

#[tokio::test]
async fn what_was_told_of_a_live_task_takes_nothing_from_the_notice_of_its_end() {
    let rig = Rig::new();
    notify(&rig);
    let agent = rig.agent("a");
    let owner = agent.agent();
    let producer = Producer::stream();
    let id = rig.start(&producer, Some(owner));
    rig.tasks.read(&id, Some(owner), 1).unwrap().claim.deliver();
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(notices(owner), 1);
}

#[tokio::test]
async fn an_end_that_is_told_after_all_listeners_kept_quiet_leaves_nothing_in_the_inbox() {
    let rig = Rig::new();
    let ends = rig.ends();
    let agent = rig.agent("a");
    let owner = agent.agent();
    let producer = Producer::new();
    let id = rig.start(&producer, Some(owner));
    producer.settle(Outcome::completed());
    settled().await;
    rig.tasks.read(&id, Some(owner), 1).unwrap().claim.deliver();
    let message = Message {
        content: Vec::new(),
        source: MessageSource::User,
    };
    let key = ends.all()[0].notice_key();
    owner.inbox().inject(Notice { key, message });
    assert_eq!(notices(owner), 1, "a tombstone would have refused it");
}

#[tokio::test]
async fn the_end_of_a_task_that_is_gone_needs_no_claim() {
    let rig = Rig::new();
    notify(&rig);
    let agent = rig.agent("a");
    let producer = Producer::new();
    let id = rig.start(&producer, Some(agent.agent()));
    producer.settle(Outcome::completed());
    settled().await;
    let read = rig.tasks.read(&id, Some(agent.agent()), 1).unwrap();
    agent.dispose().await.unwrap();
    read.claim.deliver();
}

#[tokio::test]
async fn unowned_ends_beyond_what_is_kept_expire_and_say_so() {
    let rig = Rig::with(TasksConfig {
        retained_unowned: 2,
        ..TasksConfig::default()
    });
    let agent = rig.agent("a");
    let kept = Producer::new();
    rig.start(&kept, Some(agent.agent()));
    kept.settle(Outcome::completed());
    settled().await;
    let mut held = None;
    for n in 2..=5 {
        let producer = Producer::new();
        let id = rig.start(&producer, None);
        producer.settle(Outcome::completed());
        settled().await;
        if n == 2 {
            held = Some(rig.tasks.read(&id, None, 1).unwrap());
        }
    }
    assert_eq!(
        rig.ids(Some(agent.agent())),
        ["bash-1", "bash-2", "bash-5"],
        "a claimed record stays"
    );
    let expired = rig.tasks.get(&"bash-3".into(), None).unwrap_err().to_string();
    assert_eq!(
        expired,
        "task bash-3 has expired: it finished and its record is no longer kept"
    );
    assert!(
        rig.tasks
            .get(&"bash-03".into(), None)
            .unwrap_err()
            .to_string()
            .starts_with("unknown task")
    );
    drop(held);
    settled().await;
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(rig.ids(None), ["bash-5", "bash-6"]);
    assert!(
        rig.tasks
            .get(&"bash-2".into(), None)
            .unwrap_err()
            .to_string()
            .contains("expired")
    );
}

#[tokio::test]
async fn a_second_registry_leaves_the_notices_of_the_first_alone() {
    let rig = Rig::new();
    notify(&rig);
    let agent = rig.agent("a");
    let owner = agent.agent();
    let first = Producer::new();
    rig.start(&first, Some(owner));
    first.settle(Outcome::completed());
    settled().await;
    assert_eq!(notices(owner), 1);
    let deps = dsh_tasks::Deps {
        agents: Some(rig.agents.clone()),
    };
    let next = dsh_tasks::TaskRegistry::install(&rig.root, deps, TasksConfig::default()).unwrap();
    next.attach_surface(&rig.root, "test", Serves::Everyone).unwrap();
    let second = Producer::new();
    let spec = crate::common::owned(second.spec("bash", "l"), Some(owner));
    let id = next.start(spec).unwrap();
    assert_eq!(id.to_string(), "bash-1");
    second.settle(Outcome::completed());
    settled().await;
    next.read(&id, Some(owner), 1).unwrap().claim.deliver();
    assert_eq!(notices(owner), 1, "the first one's end was not told by that");
}

#[tokio::test]
async fn a_listener_that_goes_takes_no_other_one_along() {
    let rig = Rig::new();
    let before = rig.ends();
    let going = |_| -> dsh_tasks::BoxFuture<Result<(), dsh_tasks::BoxError>> { panic!("was called") };
    let detached = rig.tasks.on_done(&rig.root, Serves::Everyone, going).unwrap();
    let after = rig.ends();
    detached.detach().await;
    let log = dsh_testkit::LogCapture::start();
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!((before.all().len(), after.all().len()), (1, 1));
    assert!(!log.contains("was called"));
}

#[tokio::test]
async fn a_listener_added_while_an_end_is_announced_is_told_too() {
    let rig = Rig::new();
    let ends = rig.ends();
    let (tasks, scope, late) = (
        rig.tasks.clone(),
        rig.root.clone(),
        Arc::new(std::sync::Mutex::new(Vec::new())),
    );
    let seen = late.clone();
    let listen = move |first: TaskDone| -> dsh_tasks::BoxFuture<_> {
        let seen = seen.clone();
        let added = move |done: TaskDone| -> dsh_tasks::BoxFuture<_> {
            seen.lock().unwrap().push(done.snapshot);
            Box::pin(async { Ok(()) })
        };
        tasks.on_done(&scope, Serves::Everyone, added).unwrap();
        // What a listener does changes nothing of what the next one is told.
        tasks
            .kill(&first.snapshot.id, None, None)
            .unwrap()
            .claim
            .deliver();
        Box::pin(async { Ok(()) })
    };
    rig.tasks.on_done(&rig.root, Serves::Everyone, listen).unwrap();
    let producer = Producer::new();
    rig.start(&producer, None);
    producer.settle(Outcome::completed());
    settled().await;
    assert_eq!(*late.lock().unwrap(), [ends.all()[0].snapshot.clone()]);
}

#[tokio::test]
async fn looking_at_a_task_tells_nobody() {
    let rig = Rig::new();
    notify(&rig);
    let agent = rig.agent("a");
    let owner = agent.agent();
    let producer = Producer::stream();
    let id = rig.start(&producer, Some(owner));
    producer.write("unread");
    producer.settle(Outcome::completed());
    settled().await;
    assert!(!rig.status(&id, Some(owner)).reported);
    assert_eq!(rig.tasks.list(Some(owner)).len(), 1);
    rig.tasks.observe(&id, Some(owner), 0, 100).unwrap();
    assert_eq!(notices(owner), 1);
    assert_eq!(rig.tasks.read(&id, Some(owner), 100).unwrap().text, "unread");
}
