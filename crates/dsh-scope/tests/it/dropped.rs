//! What a scope does that nobody closed.

use std::sync::Arc;

use dsh_scope::Scope;
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{Trace, settle};

#[test]
fn the_last_handle_cancels_the_token_and_names_what_leaks() {
    let log = LogCapture::start();
    let (scope, trace) = (Scope::root("leaky"), Trace::default());
    let held = Arc::new(());
    let captured = held.clone();
    scope
        .effect("leaked effect", move || async move { drop(captured) })
        .unwrap();
    scope
        .child("leaked child")
        .unwrap()
        .effect("leaked below", trace.named("ran"))
        .unwrap();
    let token = scope.token().clone();

    let other = scope.clone();
    drop(scope);
    assert!(
        !token.is_cancelled() && !log.contains("leaked effect"),
        "not the last one"
    );
    drop(other);

    assert!(token.is_cancelled());
    assert_eq!(Arc::strong_count(&held), 1, "the disposer is dropped");
    assert_eq!(trace.count(), 0, "but not run");
    for label in ["leaked effect", "leaked child", "leaked below"] {
        assert!(
            log.lines()
                .iter()
                .any(|line| line.contains("WARN") && line.contains(label)),
            "{label}"
        );
    }
    assert!(log.contains("leaky"));
}

#[tokio::test]
async fn a_leaked_task_is_asked_to_stop_and_named() {
    let log = LogCapture::start();
    let scope = Scope::root("s");
    let token = scope.token().clone();
    let task = scope
        .spawn("leaked task", async move { token.cancelled().await })
        .unwrap();
    settle().await;
    drop(scope);
    assert!(log.contains("leaked task"));
    task.finished().await;
}

#[tokio::test]
async fn a_closed_scope_goes_quietly() {
    let log = LogCapture::start();
    let scope = Scope::root("tidy");
    scope.effect("done", || async {}).unwrap();
    scope.close().await.unwrap();
    drop(scope);
    assert!(!log.contains("dropped without being closed"));
}

#[tokio::test]
async fn a_closing_scope_needs_no_handle() {
    let log = LogCapture::start();
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope.effect("older", trace.named("older")).unwrap();
    scope.effect("e", trace.gated("e", &gate)).unwrap();
    {
        let mut close = task::spawn(scope.close());
        assert_pending!(close.poll());
    }
    drop(scope);
    gate.open();
    settle().await;
    assert_eq!(trace.seen(), ["e begins", "e ends", "older"]);
    assert!(!log.contains("dropped without being closed"));
}

#[tokio::test]
async fn a_handle_that_outlives_its_scope_has_nothing_to_wait_for() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    let handle = scope.effect("e", trace.named("e")).unwrap();
    drop(scope);
    assert_ready!(task::spawn(handle.dispose()).poll());
    assert_eq!(trace.count(), 0);
}

#[tokio::test]
async fn a_disposal_in_flight_outlives_the_scope_and_is_awaited() {
    let log = LogCapture::start();
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    let handle = scope.effect("in flight", trace.gated("e", &gate)).unwrap();
    let mut dispose = task::spawn(handle.dispose());
    assert_pending!(dispose.poll());
    drop(scope);
    settle().await;
    assert_pending!(dispose.poll());
    gate.open();
    settle().await;
    assert_ready!(dispose.poll());
    assert_eq!(trace.seen(), ["e begins", "e ends"]);
    assert!(!log.contains("in flight"), "it was disposed");
}
