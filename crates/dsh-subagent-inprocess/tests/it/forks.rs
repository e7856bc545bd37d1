//! Children that know what their parent knew.

use dsh_session::{EventData, SessionId, TurnEnd, TurnTrigger};
use dsh_subagent::StopReason;

use crate::nursery::{Nursery, log, talk};

#[tokio::test]
async fn s72_s142_a_fork_begins_with_its_parents_turns_and_answers_for_itself() {
    let nursery = Nursery::new();
    let parent = nursery.parent().session().clone();
    talk(&parent, "one", "said the parent");
    talk(&parent, "two", "said the parent again");
    let (run, mut child) = nursery.fork().await;
    let session = child.agent.session().clone();
    assert_eq!(session.header().seed_length, parent.len());
    assert_eq!(session.header().parent_session, Some(SessionId::new("parent")));
    let data = |events: Vec<dsh_session::Event>| -> Vec<EventData> {
        events.into_iter().map(|event| event.data).collect()
    };
    assert_eq!(data(session.events()), data(parent.events()));
    assert_eq!(child.says("said the child").await, ["the task"]);
    let result = run.result().await.expect("a result");
    assert_eq!(result.text(), "said the child");
    let own = session.events_from(session.header().seed_length);
    assert!(
        matches!(own[0].data, EventData::TurnStart { turn: 3, .. }),
        "its own turn follows: {own:?}"
    );
    assert_eq!(parent.events().len(), 12, "the parent's log has nothing of it");
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s140_a_fork_of_somebody_who_has_completed_no_turn_is_fresh() {
    let nursery = Nursery::new();
    opens_a_turn(&nursery);
    let (_run, child) = nursery.fork().await;
    assert!(child.agent.session().is_empty());
    assert_eq!(child.agent.session().header().seed_length, 0);
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s141_s143_the_open_turn_is_not_the_childs() {
    let nursery = Nursery::new();
    talk(nursery.parent().session(), "one", "said");
    let complete = nursery.parent().session().len();
    opens_a_turn(&nursery);
    let (_run, child) = nursery.fork().await;
    assert_eq!(child.agent.session().len(), complete);
    drop(child);
    nursery.close().await;
}

fn opens_a_turn(nursery: &Nursery) {
    let turn = nursery.parent().session().next_turn();
    let trigger = TurnTrigger::Message;
    log(nursery.parent(), EventData::TurnStart { turn, trigger });
    let message = dsh_session::Message::user("in flight");
    log(nursery.parent(), EventData::UserMessage(message));
}

#[tokio::test]
async fn s145_a_fork_that_says_nothing_does_not_answer_with_its_parents_words() {
    let nursery = Nursery::new();
    talk(nursery.parent().session(), "one", "said the parent");
    let (run, mut child) = nursery.fork().await;
    child.turn(async |_| TurnEnd::Completed).await;
    let result = run.result().await.expect("a result");
    assert_eq!(result.stop, StopReason::Completed);
    assert!(result.output.is_empty());
    drop(child);

    let (run, child) = nursery.fork().await;
    run.cancel();
    let result = run.result().await.expect("a result");
    assert_eq!(
        result.stop,
        StopReason::Aborted,
        "the parent's turn is not its own"
    );
    assert!(result.output.is_empty());
    drop(child);
    nursery.close().await;
}

#[tokio::test]
async fn s149_both_kinds_live_side_by_side() {
    let nursery = Nursery::new();
    talk(nursery.parent().session(), "one", "said the parent");
    let (fork, mut forked) = nursery.fork().await;
    let (spawn, mut spawned) = nursery.spawn().await;
    assert_ne!(fork.id(), spawn.id());
    spawned.says("fresh").await;
    forked.says("forked").await;
    assert_eq!(spawn.result().await.expect("a result").text(), "fresh");
    assert_eq!(fork.result().await.expect("a result").text(), "forked");
    assert_eq!(spawned.agent.session().header().seed_length, 0);
    assert_eq!(forked.agent.session().header().seed_length, 6);
    drop((forked, spawned));
    nursery.close().await;
}
