//! A real program that runs commands under guards and ends in ways of its own. It is this test program, started again.

use std::path::Path;
use std::process::{Command, Output};

use dsh_testkit::process::{Marker, is_gone, read_pid};
use dsh_testkit::{eventually, eventually_within};

use crate::fixture::Fixture;

/// How the program is to end; set in it alone.
const ENDING: &str = "TESTKIT_ENDING";
/// A command with a child that left its group, and both ignore the polite signal.
const COMMAND: &str = "trap '' TERM; setsid bash -c 'trap \"\" TERM; echo $$ > child.new; mv child.new child; \
                       while :; do sleep 0.05; done' & echo $$ > root.new; mv root.new root; wait; sleep 60";

/// Not a test by itself: what the tests below start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_that_ends() {
    let Some(ending) = std::env::var_os(ENDING) else {
        return;
    };
    let fixture = Fixture::guarded();
    let mut request = fixture.request(COMMAND);
    request.workdir = Some(std::env::current_dir().unwrap());
    let _running = fixture.start_request(request);
    eventually("both run", || {
        ["root", "child"]
            .iter()
            .all(|name| read_pid(Path::new(name)).is_some())
    })
    .await;
    match ending.to_str() {
        Some("exit") => std::process::exit(23),
        Some("abort") => std::process::abort(),
        Some("panic") => panic!("uncaught"),
        Some("forgotten") => std::mem::forget(fixture),
        _ => fixture.scope.close().await.unwrap(),
    }
}

/// Runs the program to its end; what it said, and that nothing of its command is left soon after.
async fn ends(ending: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let marker = Marker::new();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program
        .args(["--exact", "host::the_program_that_ends", "--nocapture"])
        .current_dir(directory.path())
        .env(ENDING, ending)
        .envs([marker.env()]);
    let output = tokio::task::spawn_blocking(move || program.output())
        .await
        .unwrap()
        .unwrap();
    let pids = ["root", "child"].map(|name| read_pid(&directory.path().join(name)).unwrap());
    if ending == "closed" {
        assert!(pids.iter().all(|pid| is_gone(*pid)), "at its exit already");
    }
    let limit = std::time::Duration::from_secs(5);
    eventually_within("nothing to be left", limit, || marker.survivors().is_empty()).await;
    assert!(pids.iter().all(|pid| is_gone(*pid)));
    output
}

#[tokio::test]
async fn c285_c377_an_exit_in_the_middle_leaves_nothing() {
    assert_eq!(ends("exit").await.status.code(), Some(23));
}

#[tokio::test]
async fn c377_an_abort_leaves_nothing() {
    assert_eq!(ends("abort").await.status.code(), None);
}

#[tokio::test]
async fn c377_a_panic_nobody_catches_leaves_nothing_and_is_told() {
    let output = ends("panic").await;
    assert_eq!(output.status.code(), Some(101));
    let told =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("uncaught"), "{told}");
}

#[tokio::test]
async fn a_program_that_forgets_its_commands_leaves_nothing() {
    assert_eq!(ends("forgotten").await.status.code(), Some(0));
}

#[tokio::test]
async fn c379_an_orderly_end_leaves_nothing_at_the_exit() {
    assert_eq!(ends("closed").await.status.code(), Some(0));
}
