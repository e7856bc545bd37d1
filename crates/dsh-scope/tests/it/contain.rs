//! Containment and limits.

use std::time::Duration;

use dsh_scope::{contain, contain_future, within};

#[test]
fn a_panic_becomes_its_text() {
    assert_eq!(contain(|| 7).unwrap(), 7);
    let literal = contain(|| -> u8 { panic!("plain") }).unwrap_err();
    assert_eq!(literal.to_string(), "plain");
    let formatted = contain(|| -> u8 { panic!("number {}", 3) }).unwrap_err();
    assert_eq!(formatted.to_string(), "number 3");
    let opaque = contain(|| -> u8 { std::panic::panic_any(3_u8) }).unwrap_err();
    assert_eq!(opaque.to_string(), "a panic without text");
}

#[test]
fn a_payload_that_panics_when_dropped_is_contained() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("second panic");
        }
    }
    assert!(contain(|| std::panic::panic_any(Bomb)).is_err());
}

#[tokio::test]
async fn a_future_s_panic_becomes_its_text_at_any_poll() {
    assert_eq!(contain_future(async { 7 }).await.unwrap(), 7);
    let late = async {
        tokio::task::yield_now().await;
        panic!("late");
    };
    let late: Result<(), _> = contain_future(late).await;
    assert_eq!(late.unwrap_err().to_string(), "late");
}

#[tokio::test]
async fn a_future_s_panic_while_it_is_dropped_is_contained() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "drop trouble");
        }
    }
    // Lives in the future's own state, not in its body: it goes when the future goes.
    let bomb = Bomb(true);
    let future = std::future::poll_fn(move |_| {
        let _owned = &bomb;
        std::task::Poll::Ready(7)
    });
    assert_eq!(
        contain_future(future).await.unwrap_err().to_string(),
        "drop trouble"
    );
}

#[tokio::test(start_paused = true)]
async fn within_is_a_limit_that_never_refuses_what_is_ready() {
    assert_eq!(within(Duration::ZERO, async { 7 }).await, Some(7));
    assert_eq!(
        within(Duration::from_millis(5), std::future::pending::<()>()).await,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn within_takes_a_limit_that_no_clock_can_express() {
    let long = async {
        // sleep: on a paused clock, a year is the next thing to happen
        tokio::time::sleep(Duration::from_secs(3600 * 24 * 365)).await;
        7
    };
    assert_eq!(within(Duration::MAX, long).await, Some(7));
}
