//! Ending one effect early, also while its scope closes.

use std::sync::Arc;

use dsh_scope::Scope;
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{Trace, settle};

#[tokio::test]
async fn runs_once_and_everybody_awaits_that_run() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let handle = scope.effect("e", trace.gated("e", &gate)).unwrap();

    let mut early = task::spawn(handle.dispose());
    assert_pending!(early.poll());
    settle().await;
    let mut late = task::spawn(handle.dispose());
    assert_pending!(late.poll());
    gate.open();
    settle().await;
    assert_ready!(early.poll());
    assert_ready!(late.poll());
    assert_ready!(task::spawn(handle.dispose()).poll());

    scope.close().await.unwrap();
    assert_eq!(
        trace.seen(),
        ["e begins", "e ends"],
        "closing does not run it again"
    );
}

#[tokio::test]
async fn dropping_the_handle_does_nothing() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    drop(scope.effect("e", trace.named("e")).unwrap());
    settle().await;
    assert_eq!(trace.count(), 0);
    scope.close().await.unwrap();
    assert_eq!(trace.seen(), ["e"]);
}

#[tokio::test]
async fn dropping_the_future_does_not_stop_the_disposer() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let handle = scope.effect("e", trace.gated("e", &gate)).unwrap();
    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    drop(dispose);
    gate.open();
    settle().await;
    assert_eq!(trace.seen(), ["e begins", "e ends"]);
}

#[tokio::test]
async fn closing_awaits_a_disposal_in_flight() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope.effect("older", trace.named("older")).unwrap();
    let handle = scope.effect("e", trace.gated("e", &gate)).unwrap();

    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    settle().await;
    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;
    assert_eq!(trace.seen(), ["e begins"], "it keeps its place in the order");

    gate.open();
    settle().await;
    assert_ready!(dispose.poll());
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert_eq!(trace.seen(), ["e begins", "e ends", "older"]);
}

#[tokio::test]
async fn disposal_awaits_the_run_that_closing_began() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let handle = scope.effect("e", trace.gated("e", &gate)).unwrap();

    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;
    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    gate.open();
    settle().await;
    assert_ready!(dispose.poll());
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert_eq!(trace.seen(), ["e begins", "e ends"]);
}

#[tokio::test]
async fn disposal_during_closing_may_overtake_the_order_but_runs_once() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let older = scope.effect("older", trace.named("older")).unwrap();
    scope.effect("e", trace.gated("e", &gate)).unwrap();
    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;

    older.dispose().await;
    assert_eq!(trace.seen(), ["e begins", "older"]);
    gate.open();
    close.await.unwrap();
    assert_eq!(trace.seen(), ["e begins", "older", "e ends"]);
}

#[tokio::test]
async fn a_panic_releases_all_who_wait() {
    let log = LogCapture::start();
    let (scope, gate) = (Scope::root("s"), Gate::new());
    let opened = gate.clone();
    let handle = scope
        .effect("breaks in disposal", move || async move {
            opened.opened().await;
            panic!("trouble");
        })
        .unwrap();
    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    let mut other = task::spawn(handle.dispose());
    assert_pending!(other.poll());
    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());

    gate.open();
    settle().await;
    assert_ready!(dispose.poll());
    assert_ready!(other.poll());
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert!(log.contains("breaks in disposal"));
}

#[tokio::test]
async fn a_disposer_that_disposes_itself_does_not_wait_for_itself() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    let own = Arc::new(std::sync::OnceLock::<dsh_scope::EffectHandle>::new());
    let (slot, seen) = (own.clone(), trace.clone());
    let handle = scope
        .effect("e", move || async move {
            slot.get().unwrap().dispose().await;
            seen.add("went on");
        })
        .unwrap();
    own.set(handle).unwrap();

    own.get().unwrap().dispose().await;
    assert_eq!(trace.seen(), ["went on"]);
}

#[tokio::test]
async fn nothing_of_a_disposed_effect_stays() {
    let log = LogCapture::start();
    let scope = Scope::root("s");
    let held = Arc::new(());
    let captured = held.clone();
    let handle = scope
        .effect("was disposed", move || async move { drop(captured) })
        .unwrap();
    assert_eq!(Arc::strong_count(&held), 2);
    handle.dispose().await;
    assert_eq!(Arc::strong_count(&held), 1);
    drop(scope);
    assert!(!log.contains("was disposed"), "the scope owes it no more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_disposals_and_closings_run_each_disposer_once() {
    for _ in 0..200 {
        let (scope, trace) = (Scope::root("s"), Trace::default());
        let handles: Vec<_> = ["a", "b", "c"]
            .map(|name| scope.effect(name, trace.named(name)).unwrap())
            .into();
        let racers = Scope::root("racers");
        let mut tasks = Vec::new();
        for handle in handles {
            tasks.push(
                racers
                    .spawn("dispose", async move { handle.dispose().await })
                    .unwrap(),
            );
        }
        let closed = scope.clone();
        tasks.push(
            racers
                .spawn("close", async move { closed.close().await.unwrap() })
                .unwrap(),
        );
        scope.close().await.unwrap();
        assert_eq!(trace.count(), 3, "all have ended when closing has");
        for task in tasks {
            task.finished().await;
        }
        racers.close().await.unwrap();
        assert_eq!(trace.count(), 3);
    }
}
