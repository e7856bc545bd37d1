//! Closing: the order, the one closing for all callers, refusal, panics.

use dsh_scope::{CloseError, Scope};
use dsh_testkit::{Gate, LogCapture};
use tokio_test::{assert_pending, assert_ready, task};

use crate::{Trace, settle};

#[tokio::test]
async fn disposers_run_newest_first_and_one_at_a_time() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    let gates = [Gate::new(), Gate::new(), Gate::new()];
    for (name, gate) in ["first", "second", "third"].into_iter().zip(&gates) {
        scope.effect(name, trace.gated(name, gate)).unwrap();
    }
    // Only the order of the scope counts, not who would be ready earlier.
    gates[0].open();

    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;
    assert_eq!(trace.seen(), ["third begins"]);

    gates[2].open();
    settle().await;
    assert_eq!(trace.seen(), ["third begins", "third ends", "second begins"]);
    assert_pending!(close.poll());

    gates[1].open();
    settle().await;
    assert!(close.is_woken());
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert_eq!(trace.seen()[3..], ["second ends", "first begins", "first ends"]);
}

#[tokio::test]
async fn every_caller_awaits_the_one_closing() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope.effect("e", trace.gated("e", &gate)).unwrap();
    let other = scope.clone();

    let mut early = task::spawn(scope.close());
    let mut racing = task::spawn(other.close());
    assert_pending!(early.poll());
    assert_pending!(racing.poll());
    settle().await;
    let mut late = task::spawn(scope.close());
    assert_pending!(late.poll());

    gate.open();
    settle().await;
    for caller in [&mut early, &mut racing, &mut late] {
        assert!(caller.is_woken());
        assert_eq!(assert_ready!(caller.poll()), Ok(()));
    }
    assert_eq!(trace.seen(), ["e begins", "e ends"]);
    // Over is over: nothing is waited for any more.
    assert_eq!(assert_ready!(task::spawn(other.close()).poll()), Ok(()));
    assert_eq!(trace.count(), 2);
}

#[tokio::test]
async fn dropping_the_future_stops_nothing() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope.effect("inner", trace.named("inner")).unwrap();
    scope.effect("e", trace.gated("e", &gate)).unwrap();

    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    settle().await;
    drop(close);
    gate.open();
    settle().await;

    assert_eq!(trace.seen(), ["e begins", "e ends", "inner"]);
}

#[tokio::test]
async fn closing_begins_at_the_first_poll() {
    let scope = Scope::root("s");
    drop(scope.close());
    assert!(!scope.is_closing() && !scope.token().is_cancelled());

    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());
    assert!(scope.is_closing() && scope.token().is_cancelled());
    settle().await;
    assert_eq!(assert_ready!(close.poll()), Ok(()));
    assert!(scope.is_closing(), "stays true");
}

#[tokio::test]
async fn the_token_is_cancelled_before_the_first_disposer() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    let (token, seen) = (scope.token().clone(), trace.clone());
    scope
        .effect(
            "e",
            move || async move { seen.add(token.is_cancelled().to_string()) },
        )
        .unwrap();
    scope.close().await.unwrap();
    assert_eq!(trace.seen(), ["true"]);
}

#[tokio::test]
async fn a_panic_of_one_disposer_is_logged_and_skips_no_other() {
    let log = LogCapture::start();
    let (scope, trace) = (Scope::root("panicky-scope"), Trace::default());
    scope.effect("oldest", trace.named("oldest")).unwrap();
    scope
        .effect("breaks while awaited", || async { panic!("late trouble") })
        .unwrap();
    scope.effect("between", trace.named("between")).unwrap();
    let breaks = || -> std::future::Ready<()> { panic!("early trouble") };
    scope.effect("breaks when called", breaks).unwrap();

    assert_eq!(scope.close().await, Ok(()));

    assert_eq!(trace.seen(), ["between", "oldest"]);
    for (label, text) in [
        ("breaks while awaited", "late trouble"),
        ("breaks when called", "early trouble"),
    ] {
        let lines = log.lines();
        let line = lines
            .iter()
            .find(|line| line.contains(label))
            .expect("the panic is logged");
        assert!(
            line.contains(text) && line.contains("panicky-scope") && line.contains("ERROR"),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_closing_scope_hands_back_what_it_refuses() {
    let (scope, trace, gate) = (Scope::root("s-1"), Trace::default(), Gate::new());
    scope.effect("e", trace.gated("e", &gate)).unwrap();
    let mut close = task::spawn(scope.close());
    assert_pending!(close.poll());

    let refused = scope.effect("late", trace.named("late disposer")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"cannot create effect on inactive scope "s-1""#
    );
    (refused.rejected)().await;
    let seen = trace.clone();
    let refused = scope
        .spawn("late", async move { seen.add("late task") })
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"cannot create effect on inactive scope "s-1""#
    );
    refused.rejected.await;
    let refused = scope.child("late").unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"cannot create effect on inactive scope "s-1""#
    );

    gate.open();
    close.await.unwrap();
    assert!(
        scope.effect("later", || async {}).is_err(),
        "closed is as closed as closing"
    );
    assert_eq!(trace.seen(), ["late disposer", "late task", "e begins", "e ends"]);
}

#[tokio::test]
async fn a_disposer_cannot_add_to_its_own_scope() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    let (inner, seen) = (scope.clone(), trace.clone());
    let disposer = move || async move {
        let refused = [
            inner.effect("more", || async {}).is_err(),
            inner.spawn("more", async {}).is_err(),
            inner.child("more").is_err(),
        ];
        seen.add(format!("{refused:?}"));
    };
    scope.effect("e", disposer).unwrap();
    scope.close().await.unwrap();
    assert_eq!(trace.seen(), ["[true, true, true]"]);
}

#[test]
fn a_runtime_that_ends_in_the_middle_is_an_error_and_no_hang() {
    let (scope, trace, gate) = (Scope::root("s"), Trace::default(), Gate::new());
    scope
        .effect("never reached", trace.named("never reached"))
        .unwrap();
    scope.effect("e", trace.gated("e", &gate)).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();

    let first = runtime();
    first.block_on(async {
        let mut close = task::spawn(scope.close());
        assert_pending!(close.poll());
        settle().await;
    });
    drop(first);

    let error = runtime().block_on(scope.close()).unwrap_err();
    assert!(
        matches!(&error, CloseError::Interrupted { scope } if &**scope == "s"),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        r#"the runtime ended while scope "s" was being closed"#
    );
    assert_eq!(trace.seen(), ["e begins"]);
}

#[test]
fn scopes_and_effects_need_no_runtime_to_be_made() {
    let (scope, trace) = (Scope::root("s"), Trace::default());
    scope.effect("outer", trace.named("outer")).unwrap();
    scope
        .child("c")
        .unwrap()
        .effect("inner", trace.named("inner"))
        .unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(scope.close()).unwrap();
    assert_eq!(trace.seen(), ["inner", "outer"]);
}
