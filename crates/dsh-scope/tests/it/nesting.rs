//! Parents and children.

use std::sync::Arc;

use dsh_scope::Scope;
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{Trace, settle};

#[tokio::test]
async fn a_parent_closes_its_child_in_its_place() {
    let (parent, trace) = (Scope::root("p"), Trace::default());
    parent.effect("older", trace.named("older")).unwrap();
    let child = parent.child("c").unwrap();
    parent.effect("newer", trace.named("newer")).unwrap();
    // Registered last, and yet it has the child's place.
    child.effect("of the child", trace.named("of the child")).unwrap();

    parent.close().await.unwrap();
    assert_eq!(trace.seen(), ["newer", "of the child", "older"]);
    assert!(child.is_closing());
}

#[tokio::test]
async fn a_child_whose_handles_are_gone_is_still_closed_by_its_parent() {
    let log = LogCapture::start();
    let (parent, trace) = (Scope::root("p"), Trace::default());
    let child = parent.child("c").unwrap();
    child
        .effect("kept by the parent", trace.named("kept by the parent"))
        .unwrap();
    let token = child.token().clone();
    drop(child);
    assert!(!token.is_cancelled());
    parent.close().await.unwrap();
    assert_eq!(trace.seen(), ["kept by the parent"]);
    assert!(!log.contains("kept by the parent"));
}

#[tokio::test]
async fn a_child_closed_on_its_own_leaves_nothing_in_its_parent() {
    let log = LogCapture::start();
    let parent = Scope::root("p");
    let held = Arc::new(());
    let child = parent.child("closed alone").unwrap();
    let captured = held.clone();
    child.effect("e", move || async move { drop(captured) }).unwrap();

    child.close().await.unwrap();
    assert!(!parent.is_closing() && !parent.token().is_cancelled());
    assert_eq!(Arc::strong_count(&held), 1);
    drop(parent);
    assert!(!log.contains("closed alone"), "the parent owes it no more");
}

#[tokio::test]
async fn a_parent_awaits_a_child_that_is_closing_on_its_own() {
    let (parent, trace, gate) = (Scope::root("p"), Trace::default(), Gate::new());
    parent.effect("older", trace.named("older")).unwrap();
    let child = parent.child("c").unwrap();
    child.effect("e", trace.gated("e", &gate)).unwrap();

    let mut own = task::spawn(child.close());
    assert_pending!(own.poll());
    settle().await;
    let mut above = task::spawn(parent.close());
    assert_pending!(above.poll());
    settle().await;
    assert_eq!(trace.seen(), ["e begins"]);
    gate.open();
    settle().await;
    assert_eq!(assert_ready!(own.poll()), Ok(()));
    assert_eq!(assert_ready!(above.poll()), Ok(()));
    assert_eq!(trace.seen(), ["e begins", "e ends", "older"]);
}

#[tokio::test]
async fn tokens_follow_the_tree_downwards_only() {
    let parent = Scope::root("p");
    let (child, sibling) = (parent.child("c").unwrap(), parent.child("s").unwrap());
    let grandchild = child.child("g").unwrap();
    child.close().await.unwrap();
    assert!(child.token().is_cancelled() && grandchild.token().is_cancelled());
    assert!(!parent.token().is_cancelled() && !sibling.token().is_cancelled());

    // At once, before its turn to be closed has come.
    let gate = Gate::new();
    let opened = gate.clone();
    parent
        .effect("newest", move || async move { opened.opened().await })
        .unwrap();
    let mut close = task::spawn(parent.close());
    assert_pending!(close.poll());
    assert!(sibling.token().is_cancelled() && !sibling.is_closing());
    gate.open();
    close.await.unwrap();
    assert!(sibling.is_closing());
}

#[test]
fn identity_is_the_scope_and_not_its_name() {
    let (one, other) = (Scope::root("twin"), Scope::root("twin"));
    let child = one.child("twin").unwrap();
    let grandchild = child.child("g").unwrap();

    assert_eq!(grandchild.name(), "g");
    assert!(one.is_within(&one) && child.is_within(&one) && grandchild.is_within(&one));
    assert!(grandchild.is_within(&child));
    assert!(
        !one.is_within(&child)
            && !one.is_within(&other)
            && !child.is_within(&other)
            && !child.is_within(&grandchild)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_closings_of_a_parent_and_its_children_run_each_disposer_once() {
    for _ in 0..100 {
        let (parent, trace, racers) = (Scope::root("p"), Trace::default(), Scope::root("racers"));
        for name in ["a", "b", "c"] {
            let child = parent.child(name).unwrap();
            child.effect(name, trace.named(name)).unwrap();
            let close = async move { child.close().await.unwrap() };
            racers.spawn("closes a child", close).unwrap();
        }
        parent.close().await.unwrap();
        assert_eq!(trace.count(), 3, "no child outlives its parent");
        racers.close().await.unwrap();
        assert_eq!(trace.count(), 3);
    }
}
