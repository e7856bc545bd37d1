//! The driver's seat: what opens a turn, what a turn takes, what a cancellation and a disposal do.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

use std::sync::Arc;

use dsh_agent::{
    Agent, AgentHandle, AgentRegistry, AgentSpec, AgentStatus, DriveError, Driver, Notice, NoticeKey, Stop,
    Turn, WakePolicy,
};
use dsh_llm::{ContentBlock, text_of};
use dsh_scope::Scope;
use dsh_session::{Message, MessageSource, SessionId, TurnTrigger};
use tokio_test::{assert_pending, assert_ready, task};

/// What an agent lives in.
struct Home {
    handle: AgentHandle,
    _scope: Scope,
}

fn agent() -> (Home, Arc<Agent>) {
    let scope = Scope::root("test");
    let spec = AgentSpec {
        id: SessionId::new("s-1"),
        cwd: None,
        within: scope.clone(),
    };
    let handle = AgentRegistry::new().create(spec).unwrap();
    let agent = handle.agent().clone();
    (
        Home {
            handle,
            _scope: scope,
        },
        agent,
    )
}

fn inject(agent: &Agent, text: &str) {
    let source: MessageSource =
        serde_json::from_str(r#"{"kind":"plugin","plugin":"test","form":"notice","summary":"x"}"#).unwrap();
    agent.inbox().inject(Notice {
        key: NoticeKey::new(text),
        message: Message {
            content: vec![ContentBlock::text(text)],
            source,
        },
    });
}

/// Opens a turn that must be there, and says what it began with.
async fn open<'a>(driver: &'a mut Driver) -> (Turn<'a>, String) {
    let mut next = task::spawn(driver.next_turn());
    let (turn, claim) = assert_ready!(next.poll()).unwrap();
    let said = texts(claim.messages());
    claim.commit();
    (turn, said)
}

fn nothing_opens(driver: &mut Driver) {
    let mut next = task::spawn(driver.next_turn());
    assert_pending!(next.poll());
}

fn texts(messages: &[Message]) -> String {
    let texts: Vec<String> = messages.iter().map(|message| text_of(&message.content)).collect();
    texts.join(",")
}

#[tokio::test]
async fn one_message_one_turn_and_notices_come_before_it() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::Quiet).unwrap();
    inject(&agent, "n1");
    agent.follow_up(Message::user("a")).unwrap();
    agent.follow_up(Message::user("b")).unwrap();
    let (turn, said) = open(&mut driver).await;
    assert_eq!(said, "n1,a");
    assert_eq!(turn.trigger(), TurnTrigger::Message);
    assert_eq!(agent.status(), AgentStatus::Running);
    drop(turn);
    assert_eq!(open(&mut driver).await.1, "b");
    assert_eq!(agent.status(), AgentStatus::Idle);
}

#[tokio::test]
async fn what_is_steered_joins_the_open_turn_and_what_follows_up_does_not() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (mut turn, _) = open(&mut driver).await;
    agent.follow_up(Message::user("later")).unwrap();
    agent.steer(Message::user("now")).unwrap();
    inject(&agent, "n1");
    let claim = turn.claim_or_close().unwrap();
    assert_eq!(texts(claim.messages()), "n1,now");
    claim.commit();
    assert!(turn.claim_or_close().is_none());
    drop(turn);
    assert_eq!(open(&mut driver).await.1, "later");
}

#[tokio::test]
async fn core40_a_notice_between_the_last_look_and_idle_opens_another_turn() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (mut turn, _) = open(&mut driver).await;
    assert!(turn.claim_or_close().is_none());
    inject(&agent, "n1");
    drop(turn);
    let mut idle = task::spawn(agent.when_idle());
    assert_pending!(idle.poll(), "not idle while a notice will open a turn");
    let (turn, said) = open(&mut driver).await;
    assert_eq!((turn.trigger(), said.as_str()), (TurnTrigger::Notice, "n1"));
    drop(turn);
    assert_ready!(idle.poll());
}

#[tokio::test]
async fn core33_a_cancellation_comes_before_the_end_of_a_turn_or_too_late() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (mut turn, _) = open(&mut driver).await;
    agent.cancel("before");
    assert!(turn.claim_or_close().is_none());
    assert!(turn.token().is_cancelled() && turn.stop().is_some());
    drop(turn);

    agent.follow_up(Message::user("b")).unwrap();
    let (mut turn, _) = open(&mut driver).await;
    assert!(turn.claim_or_close().is_none());
    inject(&agent, "n1");
    agent.cancel("after");
    assert!(!turn.token().is_cancelled() && turn.stop().is_none());
    assert_eq!(agent.status(), AgentStatus::Running, "its driver still writes");
    drop(turn);
    nothing_opens(&mut driver);
    assert_eq!(
        agent.inbox().pending(),
        1,
        "and yet a stop is not answered by a notice"
    );
}

#[tokio::test]
async fn a_driver_that_panics_leaves_an_idle_agent_and_a_free_seat() {
    let (home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    inject(&agent, "n1");
    let panics = async move {
        let (_turn, _opening) = driver.next_turn().await.unwrap();
        unreachable!("a bug of the driver");
    };
    let task = agent.scope().spawn("driver", panics).unwrap();
    task.finished().await;
    assert_eq!(agent.status(), AgentStatus::Idle);
    agent.when_idle().await;
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("b")).unwrap();
    assert_eq!(
        open(&mut driver).await.1,
        "n1,b",
        "what it had not told came back"
    );
    drop(driver);
    home.handle.dispose().await.unwrap();
}

#[tokio::test]
async fn t98_an_inbox_refuses_no_notice_whatever_becomes_of_its_agent() {
    let (home, agent) = agent();
    let driver = agent.drive(WakePolicy::default()).unwrap();
    drop(driver);
    home.handle.dispose().await.unwrap();
    inject(&agent, "late");
    assert_eq!(agent.inbox().pending(), 1);
    assert_eq!(agent.status(), AgentStatus::Disposed);
    agent.when_idle().await;
}

#[tokio::test]
async fn t85_t86_notices_wake_three_times_until_a_person_is_heard() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    for text in ["n1", "n2", "n3"] {
        inject(&agent, text);
        assert_eq!(open(&mut driver).await.1, text);
    }
    inject(&agent, "n4");
    nothing_opens(&mut driver);
    agent.when_idle().await;
    agent.follow_up(Message::user("a")).unwrap();
    assert_eq!(open(&mut driver).await.1, "n4,a");
    inject(&agent, "n5");
    assert_eq!(open(&mut driver).await.1, "n5", "the budget is full again");
}

#[tokio::test]
async fn t89_a_message_that_no_person_said_refills_nothing() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::Wake { max_consecutive: 1 }).unwrap();
    inject(&agent, "n1");
    assert_eq!(open(&mut driver).await.1, "n1");
    let mut machine = Message::user("m");
    machine.source =
        serde_json::from_str(r#"{"kind":"plugin","plugin":"test","form":"prompt","summary":"x"}"#).unwrap();
    agent.follow_up(machine).unwrap();
    assert_eq!(open(&mut driver).await.1, "m");
    inject(&agent, "n2");
    nothing_opens(&mut driver);
}

#[tokio::test]
async fn t84_quiet_never_wakes() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::Quiet).unwrap();
    inject(&agent, "n1");
    nothing_opens(&mut driver);
    assert_eq!(agent.inbox().pending(), 1);
}

#[tokio::test]
async fn what_waited_before_the_driver_came_opens_no_turn_and_goes_into_the_first() {
    let (_home, agent) = agent();
    inject(&agent, "old");
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    nothing_opens(&mut driver);
    agent.when_idle().await;
    agent.follow_up(Message::user("a")).unwrap();
    assert_eq!(open(&mut driver).await.1, "old,a");
}

#[tokio::test]
async fn a_held_notice_opens_nothing() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    let hold = agent.inbox().hold(&NoticeKey::new("n1"));
    inject(&agent, "n1");
    nothing_opens(&mut driver);
    drop(hold);
    assert_eq!(open(&mut driver).await.1, "n1");
}

#[tokio::test]
async fn core30_a_cancellation_of_nothing_arms_nothing() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.cancel("stop");
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, said) = open(&mut driver).await;
    assert_eq!(said, "a");
    assert_eq!(turn.stop(), None);
}

#[tokio::test]
async fn core31_a_cancellation_before_the_turn_drops_it_and_releases_who_waits() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let mut idle = task::spawn(agent.when_idle());
    assert_pending!(idle.poll());
    agent.cancel("stop");
    assert!(idle.is_woken());
    assert_ready!(idle.poll());
    nothing_opens(&mut driver);
}

#[tokio::test]
async fn core32_the_first_reason_of_a_cancellation_counts() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, _) = open(&mut driver).await;
    agent.cancel("first");
    agent.cancel("second");
    assert!(turn.token().is_cancelled());
    let reason = "first".to_owned();
    assert_eq!(turn.stop(), Some(Stop::Cancelled { reason }));
    drop(turn);
    assert_eq!(agent.status(), AgentStatus::Idle);
}

#[tokio::test]
async fn core35_what_is_asked_during_a_cancellation_is_served_after_it() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, _) = open(&mut driver).await;
    agent.cancel("stop");
    agent.follow_up(Message::user("b")).unwrap();
    drop(turn);
    let (turn, said) = open(&mut driver).await;
    assert_eq!(said, "b");
    assert_eq!(turn.stop(), None, "the cancellation was for the turn before");
    assert!(!turn.token().is_cancelled());
}

#[tokio::test]
async fn core36_a_cancellation_drops_steering_and_queued_messages() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, _) = open(&mut driver).await;
    agent.steer(Message::user("s")).unwrap();
    agent.follow_up(Message::user("b")).unwrap();
    agent.cancel("stop");
    drop(turn);
    nothing_opens(&mut driver);
    agent.when_idle().await;
}

#[tokio::test]
async fn a_stop_is_not_answered_by_a_notice_of_the_stopped_turn_and_loses_none() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, _) = open(&mut driver).await;
    inject(&agent, "before");
    agent.cancel("stop");
    inject(&agent, "after");
    drop(turn);
    nothing_opens(&mut driver);
    inject(&agent, "new");
    assert_eq!(open(&mut driver).await.1, "before,after,new");
}

#[tokio::test]
async fn core28_core37_a_disposed_agent_takes_nothing_and_waits_for_its_driver() {
    let (home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("a")).unwrap();
    let (turn, _) = open(&mut driver).await;
    let mut dispose = task::spawn(home.handle.dispose());
    assert_pending!(dispose.poll());
    tokio::task::yield_now().await;
    assert_eq!(turn.stop(), Some(Stop::Disposed));
    assert!(turn.token().is_cancelled());
    agent.cancel("stop");
    assert_eq!(turn.stop(), Some(Stop::Disposed), "disposal comes first");
    let refused = agent.follow_up(Message::user("b")).unwrap_err();
    assert_eq!(refused.to_string(), r#"agent "s-1" takes nothing any more"#);
    assert!(agent.steer(Message::user("b")).is_err());
    let mut idle = task::spawn(agent.when_idle());
    assert_pending!(idle.poll());
    drop(turn);
    assert!(driver.next_turn().await.is_none());
    assert_pending!(idle.poll());
    drop(driver);
    assert_ready!(idle.poll());
    dispose.await.unwrap();
    assert!(matches!(
        agent.drive(WakePolicy::Quiet),
        Err(DriveError::Disposed(_))
    ));
}

#[tokio::test]
async fn one_driver_at_a_time() {
    let (_home, agent) = agent();
    let driver = agent.drive(WakePolicy::Quiet).unwrap();
    assert!(matches!(
        agent.drive(WakePolicy::Quiet),
        Err(DriveError::Driven(_))
    ));
    drop(driver);
    assert!(agent.drive(WakePolicy::Quiet).is_ok());
}

/// Many senders, one driver: each message is taken once, in each sender's order.
#[tokio::test(flavor = "multi_thread")]
async fn core39_a_burst_of_messages_loses_nothing() {
    let (home, agent) = agent();
    let mut driver = agent
        .drive(WakePolicy::Wake {
            max_consecutive: 1_000,
        })
        .unwrap();
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let agent = agent.clone();
            std::thread::spawn(move || {
                for number in 0..200 {
                    let text = format!("{sender}:{number}");
                    match number % 3 {
                        0 => agent.follow_up(Message::user(&text)).unwrap(),
                        1 => agent.steer(Message::user(&text)).unwrap(),
                        _ => inject(&agent, &text),
                    }
                }
            })
        })
        .collect();
    let mut taken = Vec::new();
    while taken.len() < 800 {
        let (mut turn, opening) = driver.next_turn().await.unwrap();
        let mut claim = Some(opening);
        while let Some(some) = claim {
            taken.extend(some.messages().iter().map(|message| text_of(&message.content)));
            some.commit();
            claim = turn.claim_or_close();
        }
    }
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let mut sorted = taken.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted.len(), 800);
    nothing_opens(&mut driver);
    drop(driver);
    home.handle.dispose().await.unwrap();
}

#[tokio::test]
async fn a_concluded_agent_takes_no_further_step_and_opens_no_turn() {
    let (_home, agent) = agent();
    let mut driver = agent.drive(WakePolicy::default()).unwrap();
    agent.follow_up(Message::user("one")).unwrap();
    agent.follow_up(Message::user("two")).unwrap();
    let (mut turn, _) = open(&mut driver).await;
    agent.steer(Message::user("more")).unwrap();
    assert!(!turn.is_concluded());

    agent.conclude();
    assert!(turn.is_concluded());
    inject(&agent, "late");
    assert!(turn.claim_or_close().is_none());
    assert!(agent.steer(Message::user("more")).is_err());
    assert!(agent.follow_up(Message::user("more")).is_err());
    drop(turn);
    agent.when_idle().await;
    nothing_opens(&mut driver);
}
