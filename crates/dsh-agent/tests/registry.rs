//! Identity, registration and disposal of agents.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails like a test")]

use std::{error::Error, sync::Arc};

use dsh_agent::{Agent, AgentError, AgentHandle, AgentRegistry, AgentSpec};
use dsh_scope::{CloseError, Scope};
use dsh_session::SessionId;
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

fn create(agents: &AgentRegistry, id: &str, within: &Scope) -> Result<AgentHandle, AgentError> {
    agents.create(AgentSpec {
        id: SessionId::new(id),
        cwd: None,
        within: within.clone(),
    })
}

fn one() -> (Scope, AgentRegistry, AgentHandle, Arc<Agent>) {
    let (root, agents) = (Scope::root("root"), AgentRegistry::new());
    let handle = create(&agents, "a", &root).unwrap();
    let agent = handle.agent().clone();
    (root, agents, handle, agent)
}

async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_agent_is_found_by_its_id_and_known_by_its_instance() {
    let (root, agents, _handle, agent) = one();
    let found = agents.get(agent.id()).unwrap();
    assert!(Arc::ptr_eq(&found, &agent) && agents.is_registered(&agent));
    assert_eq!(agent.id().as_str(), "a");
    assert_eq!(agent.id(), agent.session().id(), "there is no second id");
    assert!(agents.get(&SessionId::new("b")).is_none());

    let elsewhere = AgentRegistry::new();
    let twin = create(&elsewhere, "a", &root).unwrap();
    assert!(!agents.is_registered(twin.agent()) && !elsewhere.is_registered(&agent));
    assert_ne!(twin.agent().instance(), agent.instance());
}

#[test]
fn it_works_where_its_session_does() {
    let (root, agents) = (Scope::root("root"), AgentRegistry::new());
    let spec = AgentSpec {
        id: SessionId::new("a"),
        cwd: Some("/srv".into()),
        within: root.clone(),
    };
    let handle = agents.create(spec).unwrap();
    assert_eq!(handle.agent().cwd(), Some(std::path::Path::new("/srv")));
    assert_eq!(handle.agent().session().cwd(), handle.agent().cwd());
}

#[tokio::test]
async fn an_id_is_taken_until_the_disposal_is_over() {
    let (root, agents, handle, agent) = one();
    let gate = Gate::new();
    let opened = gate.clone();
    agent
        .scope()
        .effect("owned", move || async move { opened.opened().await })
        .unwrap();
    let refused = create(&agents, "a", &root).unwrap_err();
    assert!(matches!(refused, AgentError::Duplicate(_)));
    assert_eq!(refused.to_string(), r#"agent "a" is already registered"#);

    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    settle().await;
    assert!(agent.scope().is_closing() && agents.is_registered(&agent));
    assert!(
        create(&agents, "a", &root).is_err(),
        "what it owned has not ended"
    );

    gate.open();
    settle().await;
    assert_eq!(assert_ready!(dispose.poll()), Ok(()));
    assert!(!agents.is_registered(&agent) && agents.get(agent.id()).is_none());
    assert_ne!(
        create(&agents, "a", &root).unwrap().agent().instance(),
        agent.instance()
    );
}

#[tokio::test]
async fn core2_every_caller_awaits_the_one_disposal_and_none_can_stop_it() {
    let (_root, agents, handle, agent) = one();
    let gate = Gate::new();
    let opened = gate.clone();
    agent
        .scope()
        .effect("owned", move || async move { opened.opened().await })
        .unwrap();

    let mut dropped = task::spawn(handle.dispose());
    assert_pending!(dropped.poll());
    settle().await;
    drop(dropped);
    let mut waiting = task::spawn(handle.dispose());
    assert_pending!(waiting.poll());
    gate.open();
    settle().await;
    assert!(!agents.is_registered(&agent), "nobody has polled since");
    assert_eq!(assert_ready!(waiting.poll()), Ok(()));
    assert_eq!(assert_ready!(task::spawn(handle.dispose()).poll()), Ok(()));
}

#[tokio::test]
async fn core13_a_late_disposal_does_not_touch_a_successor() {
    let (root, agents, old, _) = one();
    old.dispose().await.unwrap();
    let new = create(&agents, "a", &root).unwrap();
    old.dispose().await.unwrap();
    assert!(agents.is_registered(new.agent()) && !new.agent().scope().is_closing());
    drop(old);
    assert!(!new.agent().scope().token().is_cancelled());
}

#[tokio::test]
async fn core17_an_agent_goes_when_the_scope_it_lives_in_closes() {
    let (root, agents, handle, agent) = one();
    assert!(agent.scope().is_within(&root) && !root.is_within(agent.scope()));
    let (registry, owner) = (agents.clone(), Arc::downgrade(&agent));
    let seen = Gate::new();
    let registered = seen.clone();
    let owned = move || async move {
        if owner
            .upgrade()
            .is_some_and(|owner| registry.is_registered(&owner))
        {
            registered.open();
        }
    };
    agent.scope().effect("owned", owned).unwrap();

    root.close().await.unwrap();
    assert!(seen.is_open(), "unregistered after its scope was closed");
    assert!(!agents.is_registered(&agent));
    assert_eq!(handle.dispose().await, Ok(()));
}

#[tokio::test]
async fn a_disposal_and_a_closing_parent_await_the_same_end() {
    let (root, agents, handle, agent) = one();
    let gate = Gate::new();
    let opened = gate.clone();
    agent
        .scope()
        .effect("owned", move || async move { opened.opened().await })
        .unwrap();
    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    let mut close = task::spawn(root.close());
    assert_pending!(close.poll());
    settle().await;
    assert_pending!(close.poll());
    assert_pending!(dispose.poll());
    gate.open();
    settle().await;
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert_eq!(assert_ready!(dispose.poll()), Ok(()));
    assert!(!agents.is_registered(&agent));
}

#[tokio::test]
async fn an_agent_s_own_task_cannot_dispose_it_and_changes_nothing_by_trying() {
    let (root, agents, handle, agent) = one();
    let handle = Arc::new(handle);
    let (answer, inner) = (Arc::new(std::sync::OnceLock::new()), handle.clone());
    let slot = answer.clone();
    let own = async move { slot.set(inner.dispose().await).unwrap() };
    agent.scope().spawn("suicidal", own).unwrap().finished().await;

    let expected = CloseError::FromWithin {
        scope: "agent a".into(),
    };
    assert_eq!(answer.get(), Some(&Err(expected)));
    assert!(agents.is_registered(&agent) && !agent.scope().is_closing());

    // A task beside the agent can.
    let beside = handle.clone();
    let task = root
        .spawn("leader", async move { beside.dispose().await.unwrap() })
        .unwrap();
    task.finished().await;
    assert!(!agents.is_registered(&agent));
}

#[tokio::test]
async fn a_dropped_handle_asks_to_stop_and_leaves_the_rest_to_the_parent() {
    let log = LogCapture::start();
    let (root, agents) = (Scope::root("root"), AgentRegistry::new());
    let agent = create(&agents, "forgotten", &root).unwrap().agent().clone();

    assert!(agent.scope().token().is_cancelled() && !agent.scope().is_closing());
    assert!(agents.is_registered(&agent));
    assert!(
        log.lines()
            .iter()
            .any(|line| line.contains("WARN") && line.contains("forgotten"))
    );

    root.close().await.unwrap();
    assert!(agent.scope().is_closing() && !agents.is_registered(&agent));
}

#[tokio::test]
async fn a_handle_dropped_after_its_disposal_began_is_quiet() {
    let log = LogCapture::start();
    let (root, agents) = (Scope::root("root"), AgentRegistry::new());
    let handle = create(&agents, "well-kept", &root).unwrap();
    let agent = handle.agent().clone();
    {
        let mut dispose = task::spawn(handle.dispose());
        assert_pending!(dispose.poll());
    }
    drop(handle);
    settle().await;
    assert!(!agents.is_registered(&agent));

    let handle = create(&agents, "well-kept", &root).unwrap();
    root.close().await.unwrap();
    drop(handle);
    assert!(!log.contains("dropped without dispose"));
}

#[tokio::test]
async fn an_agent_can_be_disposed_when_its_parent_was_dropped() {
    let (root, agents, handle, agent) = one();
    let (seen, ended) = (Gate::new(), Gate::new());
    let (run, opened) = (seen.clone(), ended.clone());
    agent
        .scope()
        .effect("owned", move || async move { run.open() })
        .unwrap();
    agent
        .scope()
        .spawn("owned task", async move { opened.opened().await })
        .unwrap();
    drop(root);
    assert!(agent.scope().token().is_cancelled());
    ended.open();
    assert_eq!(handle.dispose().await, Ok(()));
    assert!(seen.is_open() && !agents.is_registered(&agent));
}

#[tokio::test]
async fn a_closing_scope_takes_no_agent() {
    let (root, agents) = (Scope::root("root"), AgentRegistry::new());
    root.close().await.unwrap();
    let refused = create(&agents, "a", &root).unwrap_err();
    assert_eq!(refused.to_string(), r#"agent "a" has no scope to live in"#);
    let source = refused.source().unwrap().to_string();
    assert_eq!(source, r#"cannot create effect on inactive scope "root""#);
    assert!(agents.get(&SessionId::new("a")).is_none());
}

#[test]
fn core11_of_racing_creations_one_wins_and_the_others_leave_nothing() {
    let log = LogCapture::start();
    for _ in 0..50 {
        let (root, agents) = (Scope::root("root"), AgentRegistry::new());
        let won: Vec<_> = std::thread::scope(|threads| {
            let race = || create(&agents, "contested", &root).ok();
            let racers: Vec<_> = (0..4).map(|_| threads.spawn(race)).collect();
            racers
                .into_iter()
                .filter_map(|racer| racer.join().unwrap())
                .collect()
        });
        assert_eq!(won.len(), 1);
        assert!(agents.is_registered(won[0].agent()));
        std::mem::forget(won);
        drop(root);
    }
    let leaked = log
        .lines()
        .iter()
        .filter(|line| line.contains("scope \\\"agent contested"))
        .count();
    assert_eq!(leaked, 50, "each root owed one agent's scope");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_disposals_end_one_agent_and_spare_its_successor() {
    for _ in 0..100 {
        let (root, agents, handle, agent) = one();
        let (handle, racers) = (Arc::new(handle), Scope::root("racers"));
        for _ in 0..3 {
            let handle = handle.clone();
            racers
                .spawn("disposes", async move { handle.dispose().await.unwrap() })
                .unwrap();
        }
        handle.dispose().await.unwrap();
        assert!(!agents.is_registered(&agent));
        // The other disposals may still be on their way.
        let successor = create(&agents, "a", &root).unwrap();
        racers.close().await.unwrap();
        assert!(agents.is_registered(successor.agent()) && !successor.agent().scope().is_closing());
        root.close().await.unwrap();
        assert!(agents.get(agent.id()).is_none());
    }
}
