//! The ends of runs that are not the product's idea.

use dsh_subagent::StopReason;
use dsh_testkit::eventually;

use crate::support::Home;

/// Until it is told to end; it then waits for a file.
const STUBBORN: &str = "trap 'echo > told; until_made go; exit 0' TERM; up; echo > up; until_made never";

#[tokio::test]
async fn s246_a_cancelled_run_is_aborted_at_once_and_no_other() {
    let home = Home::of(STUBBORN);
    let (one, two) = (home.start().await, home.start().await);
    home.made("up").await;
    one.cancel();
    let result = one.result().await.expect("a result");
    assert_eq!(
        (result.stop, result.output.len(), result.diagnostic),
        (StopReason::Aborted, 0, None)
    );
    assert!(
        !home.file("told").exists(),
        "the product itself is the disposal's"
    );
    tokio::select! {
        biased;
        result = two.result() => panic!("the other one goes on: {result:?}"),
        () = tokio::task::yield_now() => {}
    }
    home.make("go");
    for run in [one, two] {
        run.dispose().await.expect("nothing is left");
    }
    assert!(home.is_gone());
}

/// The stream has ended with an answer when the run is cancelled, and nobody has read it yet.
#[tokio::test]
async fn s247_a_cancellation_counts_although_the_answer_is_there() {
    let home = Home::of("up; until_made go; success done");
    let run = home.start().await;
    home.make("go");
    // This thread is the only one: nothing is read meanwhile.
    while !home.is_gone() {
        std::thread::yield_now();
    }
    run.cancel();
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("nothing is left");
}

#[tokio::test]
async fn s251_a_disposal_is_over_when_the_product_is_gone() {
    let home = Home::of(STUBBORN);
    let run = home.start().await;
    home.made("up").await;
    tokio::select! {
        ended = run.dispose() => panic!("the product lives: {ended:?}"),
        () = home.made("told") => {}
    }
    assert!(!home.is_gone());
    home.make("go");
    run.dispose().await.expect("nothing is left");
    assert!(home.is_gone());
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    run.dispose().await.expect("and once more");
}

#[tokio::test]
async fn s249_what_does_not_end_by_itself_is_killed_after_the_grace() {
    let home = Home::new();
    let mut config = home.config("trap '' TERM; up; until_made never");
    config.dispose_grace_ms = 50.0;
    home.install(config).expect("a provider");
    let run = home.start().await;
    run.dispose().await.expect("nothing is left");
    assert!(home.is_gone());
}

/// A product that says something on its way out lives to do so, however much it is.
#[tokio::test]
async fn s249_what_a_product_writes_while_it_ends_is_read() {
    let home = Home::of(
        "trap 'head -c 300000 /dev/zero | tr \"\\0\" x; echo gone >&2; echo > told; exit 0' TERM; up; echo > up\n\
         until_made never",
    );
    let run = home.start().await;
    home.made("up").await;
    run.dispose().await.expect("nothing is left");
    assert!(home.file("told").exists());
}

#[tokio::test]
async fn a_parent_that_goes_takes_its_product_with_it() {
    let home = Home::of("up; sleep 600 & echo $! > sleeper; wait");
    let run = home.start().await;
    let sleeper = home.file("sleeper");
    eventually("the sleeper", || {
        dsh_testkit::process::read_pid(&sleeper).is_some()
    })
    .await;
    home.parent.dispose().await.expect("it goes");
    assert_eq!(run.result().await.expect("a result").stop, StopReason::Aborted);
    assert!(home.is_gone());
    let sleeper = dsh_testkit::process::read_pid(&sleeper).expect("it was just there");
    assert!(dsh_testkit::process::is_gone(sleeper));
}
