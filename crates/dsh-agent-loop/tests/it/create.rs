//! How an agent begins.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_agent::Compose;
use dsh_agent_loop::{CreateError, LoopConfig};
use dsh_session::{Session, SessionId};
use dsh_testkit::{Gate, LogCapture};

use crate::played::{Room, ask, says, user};

fn session() -> Session {
    Session::new(SessionId::new("s-1"), None)
}

fn composing(compose: impl Fn(Arc<Agent>) + Send + 'static, gate: Gate) -> Compose {
    Box::new(move |agent| {
        Box::pin(async move {
            gate.opened().await;
            compose(agent);
            Ok(())
        })
    })
}

#[tokio::test]
async fn core8_an_agent_is_composed_before_it_works() {
    let room = Room::new([says("hello")]);
    let gate = Gate::new();
    let tools = room.tools.clone();
    let compose = move |agent: Arc<Agent>| {
        assert_eq!(agent.session().len(), 0, "what was asked waits");
        drop(tools.restrict(&agent, dsh_tools::Restriction::Deny(["look".to_owned()].into())));
    };
    room.quick("look");
    let mut plan = room.plan(session());
    plan.compose = Some(composing(compose, gate.clone()));
    let agent_loop = room.agent_loop(LoopConfig::default());
    let asks = async {
        // Its id is taken, and nothing more is known of it.
        let agent = room.agents.get(&SessionId::new("s-1")).unwrap();
        agent.follow_up(user("hi")).unwrap();
        gate.open();
    };
    let (agent, ()) = tokio::join!(agent_loop.create(plan), asks);
    let agent = agent.unwrap();
    agent.agent().when_idle().await;
    assert_eq!(room.asked(), [["hi"]]);
    assert!(room.offered(0).is_empty(), "the composed agent has no such tool");
    room.check_requests(agent.agent());
}

#[tokio::test]
async fn core9_an_agent_that_could_not_be_composed_leaves_nothing_and_frees_its_id() {
    let room = Room::new([says("hello")]);
    let agent_loop = room.agent_loop(LoopConfig::default());
    let mut fails = room.plan(session());
    fails.compose = Some(Box::new(|_| Box::pin(async { Err("no luck".into()) })));
    let refused = agent_loop.create(fails).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot compose the agent: no luck");

    let mut panics = room.plan(session());
    panics.compose = Some(Box::new(|_| unreachable!("a bug of whoever composes")));
    let refused = agent_loop.create(panics).await.unwrap_err();
    assert!(matches!(refused, CreateError::Compose(_)), "{refused}");
    assert!(
        refused.to_string().contains("a bug of whoever composes"),
        "{refused}"
    );

    assert!(room.agents.get(&SessionId::new("s-1")).is_none());
    let agent = room.agent().await;
    ask(&agent, "hi").await;
    assert_eq!(room.asked(), [["hi"]]);
}

#[tokio::test]
async fn core9_an_agent_whose_creation_is_given_up_is_disposed_with_its_parent() {
    let room = Room::new([]);
    let log = LogCapture::start();
    let mut plan = room.plan(session());
    plan.compose = Some(composing(|_| {}, Gate::new()));
    let agent_loop = room.agent_loop(LoopConfig::default());
    let given_up = tokio::time::timeout(std::time::Duration::ZERO, agent_loop.create(plan)).await;
    assert!(given_up.is_err());
    let agent = room.agents.get(&SessionId::new("s-1")).unwrap();
    assert!(agent.scope().token().is_cancelled());
    assert!(
        log.contains("agent handle dropped without dispose"),
        "{:?}",
        log.lines()
    );
    room.scope.close().await.unwrap();
    assert!(room.agents.get(&SessionId::new("s-1")).is_none());
}

#[tokio::test]
async fn core11_of_two_agents_with_one_id_one_is_made() {
    let room = Room::new([]);
    let agent_loop = room.agent_loop(LoopConfig::default());
    let (one, two) = tokio::join!(
        agent_loop.create(room.plan(session())),
        agent_loop.create(room.plan(session()))
    );
    let refused = one.and(two).unwrap_err();
    assert_eq!(refused.to_string(), r#"agent "s-1" is already registered"#);
}
