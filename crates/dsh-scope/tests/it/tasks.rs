//! Tasks that a scope tracks.

use std::sync::Arc;

use dsh_scope::Scope;
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{Trace, settle};

#[tokio::test]
async fn closing_cancels_the_token_and_awaits_tasks_in_their_place() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope.effect("older", trace.named("older")).unwrap();
    let (token, seen, opened) = (scope.token().clone(), trace.clone(), gate.clone());
    scope
        .spawn("t", async move {
            token.cancelled().await;
            seen.add("task was asked to stop");
            opened.opened().await;
            seen.add("task ends");
        })
        .unwrap();
    scope.effect("newer", trace.named("newer")).unwrap();

    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;
    assert_pending!(close.poll());
    let mut so_far = trace.seen();
    so_far.sort();
    assert_eq!(so_far, ["newer", "task was asked to stop"]);

    gate.open();
    settle().await;
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert_eq!(trace.seen()[2..], ["task ends", "older"]);
}

#[tokio::test]
async fn a_panic_is_logged_with_the_label_and_ends_nothing_else() {
    let log = LogCapture::start();
    let (scope, gate) = (Scope::root("s"), Gate::new());
    let broken = scope
        .spawn("breaks in a task", async { panic!("task trouble") })
        .unwrap();
    let opened = gate.clone();
    let healthy = scope
        .spawn("healthy", async move { opened.opened().await })
        .unwrap();

    broken.finished().await;
    assert!(broken.is_finished() && !healthy.is_finished());
    assert!(!scope.token().is_cancelled());
    let lines = log.lines();
    let line = lines
        .iter()
        .find(|line| line.contains("breaks in a task"))
        .expect("the panic is logged");
    assert!(line.contains("task trouble"), "{line}");

    gate.open();
    assert_eq!(scope.close().await, Ok(()));
}

#[tokio::test]
async fn a_finished_task_leaves_nothing_and_a_dropped_handle_lets_it_go_on() {
    let log = LogCapture::start();
    let (scope, gate) = (Scope::root("s"), Gate::new());
    let held = Arc::new(());
    let (captured, opened) = (held.clone(), gate.clone());
    drop(
        scope
            .spawn("ends early", async move {
                opened.opened().await;
                drop(captured);
            })
            .unwrap(),
    );
    settle().await;
    assert_eq!(Arc::strong_count(&held), 2);
    gate.open();
    settle().await;
    assert_eq!(Arc::strong_count(&held), 1);
    drop(scope);
    assert!(!log.contains("ends early"), "the scope owes it no more");
}

#[tokio::test]
async fn what_a_task_owned_is_gone_when_its_end_is_seen() {
    let scope = Scope::root("s");
    let held = Arc::new(());
    let captured = held.clone();
    let task = scope
        .spawn("t", async move {
            let _captured = captured;
            panic!("with things in hand");
        })
        .unwrap();
    task.finished().await;
    assert_eq!(Arc::strong_count(&held), 1);
}

#[tokio::test]
async fn a_task_that_awaits_its_own_end_goes_on() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let own = Arc::new(std::sync::OnceLock::<dsh_scope::TrackedTask>::new());
    let (slot, seen, opened) = (own.clone(), trace.clone(), gate.clone());
    let task = scope
        .spawn("t", async move {
            opened.opened().await;
            slot.get().unwrap().finished().await;
            seen.add("went on");
        })
        .unwrap();
    own.set(task).unwrap();
    gate.open();
    own.get().unwrap().finished().await;
    assert_eq!(trace.seen(), ["went on"]);
}

#[test]
fn a_runtime_that_ends_releases_those_who_wait_for_its_tasks() {
    let (scope, gate) = (Scope::root("s"), Gate::new());
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    let first = runtime();
    let task = first.block_on(async { scope.spawn("t", async move { gate.opened().await }).unwrap() });
    drop(first);
    runtime().block_on(async {
        task.finished().await;
        assert_eq!(scope.close().await, Ok(()));
    });
}
