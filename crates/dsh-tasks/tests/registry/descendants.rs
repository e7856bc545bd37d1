//! What the sessions above an owner may do with its tasks, and what it costs the owner: nothing.

use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle};
use dsh_session::{Session, SessionHeader, SessionId};
use dsh_tasks::{Access, Cause, Outcome, TaskId, TasksConfig};
use tokio_util::sync::CancellationToken;

use crate::common::{OnCancel, Producer, Rig, settled};

/// An agent whose session says that it works for the one of `parent`.
fn below(rig: &Rig, id: &str, parent: &str, depth: u64) -> AgentHandle {
    let header = SessionHeader {
        parent_session: Some(SessionId::new(parent)),
        delegation_depth: depth,
        ..SessionHeader::new(SessionId::new(id), None)
    };
    let session = Session::with_header(header);
    rig.agents.create_with(session, rig.root.clone()).unwrap()
}

fn all(rig: &Rig, caller: &Arc<Agent>) -> Vec<String> {
    let tasks = rig.tasks.list_all(Some(caller));
    tasks.iter().map(|task| task.id.to_string()).collect()
}

async fn refused(rig: &Rig, id: &TaskId, caller: &Arc<Agent>) {
    let (tasks, caller, foreign) = (&rig.tasks, Some(caller), "task bash-1 belongs to another session");
    assert_eq!(tasks.get(id, caller).unwrap_err().to_string(), foreign);
    assert_eq!(tasks.read(id, caller, 1).unwrap_err().to_string(), foreign);
    assert_eq!(tasks.observe(id, caller, 0, 1).unwrap_err().to_string(), foreign);
    assert_eq!(tasks.kill(id, caller, None).unwrap_err().to_string(), foreign);
    let waited = tasks.wait(id, caller, 1.0, &CancellationToken::new()).await;
    assert_eq!(waited.unwrap_err().to_string(), foreign);
    assert!(tasks.list_all(caller).is_empty());
}

#[tokio::test]
async fn every_session_above_reaches_a_task_and_no_other_one_does() {
    let rig = Rig::new();
    let top = rig.agent("top");
    let middle = below(&rig, "middle", "top", 1);
    let child = below(&rig, "child", "middle", 2);
    let sibling = below(&rig, "sibling", "middle", 2);
    let grandchild = below(&rig, "grandchild", "child", 3);
    let stranger = rig.agent("stranger");
    let id = rig.start(&Producer::new(), Some(child.agent()));
    for above in [&top, &middle] {
        assert!(rig.tasks.get(&id, Some(above.agent())).is_ok());
        assert!(rig.tasks.observe(&id, Some(above.agent()), 0, 9).is_ok());
        assert_eq!(all(&rig, above.agent()), ["bash-1"]);
        assert!(
            rig.ids(Some(above.agent())).is_empty(),
            "a list of its own has it not"
        );
        let unknown = rig.tasks.get(&"bash-9".into(), Some(above.agent())).unwrap_err();
        assert_eq!(unknown.to_string(), "unknown task bash-9 (your tasks: bash-1)");
    }
    assert_eq!(all(&rig, child.agent()), ["bash-1"]);
    for other in [&sibling, &grandchild, &stranger] {
        refused(&rig, &id, other.agent()).await;
    }
}

#[tokio::test]
async fn without_the_setting_a_session_reaches_its_own_tasks_only() {
    let rig = Rig::with(TasksConfig {
        access: Access::Own,
        ..TasksConfig::default()
    });
    let parent = rig.agent("parent");
    let child = below(&rig, "child", "parent", 1);
    let id = rig.start(&Producer::new(), Some(child.agent()));
    refused(&rig, &id, parent.agent()).await;
}

#[tokio::test]
async fn a_session_that_only_continues_another_one_works_for_nobody() {
    let rig = Rig::new();
    let earlier = rig.agent("earlier");
    let later = below(&rig, "later", "earlier", 0);
    let id = rig.start(&Producer::new(), Some(later.agent()));
    refused(&rig, &id, earlier.agent()).await;
}

#[tokio::test]
async fn headers_that_name_each_other_end_the_way_up() {
    let rig = Rig::new();
    let one = below(&rig, "one", "two", 1);
    let two = below(&rig, "two", "one", 1);
    rig.start(&Producer::new(), Some(one.agent()));
    assert_eq!(rig.tasks.list_all(Some(two.agent())).len(), 1);
}

#[tokio::test]
async fn who_looks_on_takes_no_output_from_the_owner() {
    let rig = Rig::new();
    let parent = rig.agent("parent");
    let child = below(&rig, "child", "parent", 1);
    let producer = Producer::stream();
    let id = rig.start(&producer, Some(child.agent()));
    producer.write("one\n");
    for _ in 0..2 {
        let read = rig.tasks.read(&id, Some(parent.agent()), 64_000).unwrap();
        assert_eq!(read.text, "one\n", "all of it, every time");
        read.claim.deliver();
    }
    // A range that the owner has under way, and one that it was told, are shown as well.
    let leased = rig.tasks.read(&id, Some(child.agent()), 64_000).unwrap();
    assert_eq!(leased.text, "one\n");
    let read = rig.tasks.read(&id, Some(parent.agent()), 64_000).unwrap();
    assert_eq!(read.text, "one\n");
    drop(read.claim);
    leased.claim.deliver();
    producer.write("two\n");
    let read = rig.tasks.read(&id, Some(parent.agent()), 64_000).unwrap();
    assert_eq!(read.text, "one\ntwo\n");
    read.claim.deliver();
    let read = rig.tasks.read(&id, Some(child.agent()), 64_000).unwrap();
    assert_eq!(read.text, "two\n");
    read.claim.deliver();
}

#[tokio::test]
async fn an_end_that_was_told_above_is_told_to_the_owner_once() {
    let rig = Rig::new();
    let ends = rig.ends();
    let parent = rig.agent("parent");
    let child = below(&rig, "child", "parent", 1);
    let producer = Producer::new();
    let id = rig.start(&producer, Some(child.agent()));
    let token = CancellationToken::new();
    let waiting = rig.tasks.wait(&id, Some(parent.agent()), 60_000.0, &token);
    tokio::pin!(waiting);
    let mut waiting = tokio_test::task::spawn(waiting);
    assert!(waiting.poll().is_pending());
    producer.settle(Outcome::completed().output("done"));
    let waited = waiting.await.unwrap();
    assert_eq!(waited.snapshot.status_line(), "[status: completed]");
    waited.claim.deliver();
    let read = rig.tasks.read(&id, Some(parent.agent()), 64_000).unwrap();
    assert_eq!(read.text, "done");
    read.claim.deliver();
    settled().await;
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
}

#[tokio::test]
async fn a_kill_from_above_is_news_to_the_owner_and_says_whose_it_was() {
    let rig = Rig::new();
    let ends = rig.ends();
    let parent = rig.agent("parent");
    let child = below(&rig, "child", "parent", 1);
    let producer = Producer::new().on_cancel(OnCancel::Settle);
    let id = rig.start(&producer, Some(child.agent()));
    let killed = rig
        .tasks
        .kill(&id, Some(parent.agent()), Some("not needed"))
        .unwrap();
    killed.claim.deliver();
    settled().await;
    assert_eq!(producer.reasons(), ["not needed"]);
    assert_eq!(ends.reported(), [("bash-1".to_owned(), false)]);
    let end = ends.all().remove(0).snapshot;
    assert_eq!(end.cause, Some(Cause::Ancestor));
    assert_eq!(end.status_line(), "[status: killed, killed by parent agent]");
    // Too late is no kill, and takes nothing either.
    let again = rig.tasks.kill(&id, Some(parent.agent()), None).unwrap();
    again.claim.deliver();
    settled().await;
    assert_eq!(ends.reported().len(), 1);
}
