//! Closing that would wait for itself.

use std::sync::{Arc, Mutex};

use dsh_scope::{CloseError, Scope};
use dsh_testkit::Gate;
use tokio_test::{assert_pending, assert_ready, task};

use crate::settle;

type Answer = Arc<Mutex<Option<Result<(), CloseError>>>>;

fn from_within(name: &str) -> Option<Result<(), CloseError>> {
    Some(Err(CloseError::FromWithin { scope: name.into() }))
}

/// Closes `scope` and keeps the answer.
fn closing(scope: &Scope) -> (Answer, impl Future<Output = ()> + Send + 'static) {
    let (answer, scope) = (Answer::default(), scope.clone());
    let slot = answer.clone();
    (answer, async move {
        let result = scope.close().await;
        *slot.lock().unwrap() = Some(result);
    })
}

#[tokio::test]
async fn a_task_cannot_close_its_own_scope() {
    let scope = Scope::root("own");
    let (answer, close) = closing(&scope);
    scope.spawn("t", close).unwrap().finished().await;

    assert_eq!(*answer.lock().unwrap(), from_within("own"));
    assert!(
        !scope.is_closing() && !scope.token().is_cancelled(),
        "nothing was changed"
    );
    let error = answer.lock().unwrap().clone().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"cannot close scope "own" from inside work it waits for; close it from outside"#
    );
    assert_eq!(scope.close().await, Ok(()), "from outside it can be closed");
}

#[tokio::test]
async fn a_task_cannot_close_an_ancestor() {
    let grandparent = Scope::root("old");
    let child = grandparent.child("mid").unwrap().child("new").unwrap();
    let (answer, close) = closing(&grandparent);
    child.spawn("t", close).unwrap().finished().await;
    assert_eq!(*answer.lock().unwrap(), from_within("old"));
}

#[tokio::test]
async fn a_task_sees_a_closing_in_flight_as_its_own_deadlock_too() {
    let (scope, gate) = (Scope::root("own"), Gate::new());
    let (answer, close) = closing(&scope);
    let opened = gate.clone();
    scope
        .spawn("t", async move {
            opened.opened().await;
            close.await;
        })
        .unwrap();
    let mut outside = task::spawn(scope.close());
    assert_pending!(outside.poll());
    gate.open();
    settle().await;
    assert_eq!(assert_ready!(outside.poll()), Ok(()));
    assert_eq!(*answer.lock().unwrap(), from_within("own"));
}

#[tokio::test]
async fn a_disposer_cannot_close_its_own_scope_or_an_ancestor() {
    let parent = Scope::root("parent");
    let child = parent.child("child").unwrap();
    let (own, close_own) = closing(&child);
    let (above, close_above) = closing(&parent);
    child.effect("closes its own", move || close_own).unwrap();
    child.effect("closes the parent", move || close_above).unwrap();

    assert_eq!(parent.close().await, Ok(()));
    assert_eq!(*own.lock().unwrap(), from_within("child"));
    assert_eq!(*above.lock().unwrap(), from_within("parent"));
}

#[tokio::test]
async fn a_disposer_run_by_its_handle_cannot_close_the_scope_either() {
    let scope = Scope::root("own");
    let (answer, close) = closing(&scope);
    let handle = scope.effect("e", move || close).unwrap();
    handle.dispose().await;
    assert_eq!(*answer.lock().unwrap(), from_within("own"));
    assert!(!scope.is_closing());
}

#[tokio::test]
async fn what_a_task_closes_cannot_close_the_task_s_scope() {
    let (waiting, other) = (Scope::root("waiting"), Scope::root("other"));
    let (answer, close_waiting) = closing(&waiting);
    other.effect("closes back", move || close_waiting).unwrap();
    let (forth, close_other) = closing(&other);
    waiting.spawn("t", close_other).unwrap().finished().await;

    assert_eq!(*forth.lock().unwrap(), Some(Ok(())));
    assert_eq!(*answer.lock().unwrap(), from_within("waiting"));
}

#[tokio::test]
async fn what_a_task_disposes_cannot_close_the_task_s_scope() {
    let (waiting, other) = (Scope::root("waiting"), Scope::root("other"));
    let (answer, close_waiting) = closing(&waiting);
    let handle = other.effect("closes back", move || close_waiting).unwrap();
    waiting
        .spawn("t", async move { handle.dispose().await })
        .unwrap()
        .finished()
        .await;
    assert_eq!(*answer.lock().unwrap(), from_within("waiting"));
}

#[tokio::test]
async fn a_task_can_close_what_does_not_wait_for_it() {
    let parent = Scope::root("parent");
    let (child, sibling) = (parent.child("child").unwrap(), parent.child("sibling").unwrap());
    let (down, close_child) = closing(&child);
    parent
        .spawn("closes a child", close_child)
        .unwrap()
        .finished()
        .await;
    assert_eq!(*down.lock().unwrap(), Some(Ok(())));

    let third = parent.child("third").unwrap();
    let (across, close_sibling) = closing(&sibling);
    third
        .spawn("closes a sibling", close_sibling)
        .unwrap()
        .finished()
        .await;
    assert_eq!(*across.lock().unwrap(), Some(Ok(())));
    assert!(!parent.is_closing());
}

#[tokio::test]
async fn asking_first_answers_what_closing_would() {
    let scope = Scope::root("own");
    assert_eq!(scope.closable_here(), Ok(()));
    let (answer, inner) = (Answer::default(), scope.clone());
    let slot = answer.clone();
    let ask = async move { *slot.lock().unwrap() = Some(inner.closable_here()) };
    scope.spawn("t", ask).unwrap().finished().await;
    assert_eq!(*answer.lock().unwrap(), from_within("own"));
}
