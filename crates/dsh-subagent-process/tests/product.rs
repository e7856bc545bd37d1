//! Products that are shells.

#![expect(clippy::expect_used, reason = "a test helper that cannot go on ends the test")]

use std::time::Duration;

use dsh_subagent_process::{
    JsonLines, LineError, Lines, LogLines, MAX_LINE_BYTES, Product, ProductSpec, Streams, log_lines,
};
use dsh_subprocess::Launcher;
use dsh_testkit::LogCapture;
use serde_json::json;
use tokio_util::sync::CancellationToken;

fn shell(script: &str) -> ProductSpec {
    ProductSpec {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        grace: Duration::from_secs(5),
        hurry: CancellationToken::new(),
    }
}

async fn start(script: &str) -> (Product, Streams) {
    Product::start(&Launcher::groups(), shell(script))
        .await
        .expect("a shell")
}

#[tokio::test]
async fn a_conversation_in_lines_then_nothing_is_left() {
    let (product, streams) = start("while read line; do echo \"got $line\"; done; printf rest").await;
    let requests = JsonLines::new(streams.stdin);
    let mut answers = Lines::new(streams.stdout);
    for n in 0..3 {
        requests.send(&json!({ "n": n })).await.expect("it reads");
        assert_eq!(
            answers.next().await.expect("a line"),
            Some(format!("got {{\"n\":{n}}}"))
        );
    }
    requests.close().await;
    let refused = requests.send(&json!(1)).await.expect_err("closed");
    assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(answers.next().await.expect("a line").as_deref(), Some("rest"));
    assert_eq!(answers.next().await.expect("its end"), None);
    assert_eq!(product.exit().await.to_string(), "exit code: 0");
    product.release().await.expect("nothing is left");
}

#[tokio::test]
async fn a_release_ends_what_the_product_left_running() {
    let (product, streams) = start("sleep 600 & echo $!; exit 3").await;
    let mut lines = Lines::new(streams.stdout);
    let sleeper = lines.next().await.expect("a line").expect("a pid");
    assert_eq!(product.exit().await.to_string(), "exit code: 3");
    let stat = || std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
    let gone = |stat: &str| stat.is_empty() || stat.contains(") Z ");
    assert!(!gone(&stat()), "it runs on: {}", stat());
    product.release().await.expect("nothing is left");
    product.release().await.expect("and nothing comes again");
    assert!(gone(&stat()), "{}", stat());
}

#[tokio::test]
async fn what_does_not_listen_is_killed_after_the_grace() {
    let mut spec = shell("trap '' TERM; echo ready; while :; do sleep 600; done");
    spec.grace = Duration::from_millis(50);
    let (product, streams) = Product::start(&Launcher::groups(), spec).await.expect("a shell");
    let mut lines = Lines::new(streams.stdout);
    assert_eq!(lines.next().await.expect("a line").as_deref(), Some("ready"));
    product.release().await.expect("nothing is left");
    assert_eq!(product.exited().expect("over").to_string(), "signal: SIGKILL");
}

#[tokio::test]
async fn a_hurry_takes_the_grace_from_an_end_that_is_awaited_and_from_later_ones() {
    let mut spec = shell("trap '' TERM; echo ready; while :; do sleep 600; done");
    spec.grace = Duration::from_secs(600);
    for _ in ["awaited", "later"] {
        let (product, streams) = Product::start(&Launcher::groups(), spec.clone())
            .await
            .expect("a shell");
        let mut lines = Lines::new(streams.stdout);
        assert_eq!(lines.next().await.expect("a line").as_deref(), Some("ready"));
        let in_a_moment = async { spec.hurry.cancel() };
        // The release is polled first: it has begun when the hurry comes.
        let released = async { tokio::join!(biased; product.release(), in_a_moment).0 };
        let released = tokio::time::timeout(Duration::from_secs(30), released).await;
        released
            .expect("it is not waited for the grace")
            .expect("nothing is left");
        assert_eq!(product.exited().expect("over").to_string(), "signal: SIGKILL");
    }
}

#[tokio::test]
async fn a_line_that_never_ends_is_refused() {
    let line = vec![b'x'; MAX_LINE_BYTES + 1];
    let mut lines = Lines::new(&line[..]);
    assert!(matches!(lines.next().await, Err(LineError::TooLong)));

    let mut longest = vec![b'x'; MAX_LINE_BYTES - 1];
    longest.push(b'\n');
    let mut lines = Lines::new(&longest[..]);
    let read = lines.next().await.expect("it fits").expect("a line");
    assert_eq!(read.len(), MAX_LINE_BYTES - 1);
}

#[tokio::test]
async fn a_reader_that_was_dropped_in_the_middle_of_a_line_has_lost_nothing() {
    let (product, streams) = start("printf first; read go; echo ' half'").await;
    let requests = JsonLines::new(streams.stdin);
    let mut lines = Lines::new(streams.stdout);
    let ticks = async {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        line = lines.next() => panic!("no end of line yet: {line:?}"),
        () = ticks => {}
    }
    requests.send(&json!("go")).await.expect("it reads");
    assert_eq!(lines.next().await.expect("a line").as_deref(), Some("first half"));
    product.release().await.expect("nothing is left");
}

#[tokio::test]
async fn what_it_writes_for_people_is_seen_whole() {
    let (product, streams) = start("printf 'one\\ntwo' >&2").await;
    let mut seen = Vec::new();
    log_lines("shell", streams.stderr, |chunk| seen.extend_from_slice(chunk)).await;
    assert_eq!(seen, b"one\ntwo");
    product.release().await.expect("nothing is left");
}

#[tokio::test]
async fn what_it_writes_for_people_comes_in_chunks_and_is_logged_in_lines() {
    let logged = LogCapture::start();
    let (product, streams) = start("printf 'chunky o' >&2; read go; printf 'ne\\n\\ntwo' >&2").await;
    let requests = JsonLines::new(streams.stdin);
    let mut log = LogLines::new("chunky", streams.stderr);
    assert_eq!(log.next().await, Some(&b"chunky o"[..]));
    assert!(!logged.contains("chunky o"), "no line yet");
    requests.send(&json!("go")).await.expect("it reads");
    let mut rest = Vec::new();
    while let Some(chunk) = log.next().await {
        rest.extend_from_slice(chunk);
    }
    assert_eq!(rest, b"ne\n\ntwo");
    let lines = logged.lines();
    let of_it: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains("product=\"chunky\""))
        .collect();
    assert_eq!(of_it.len(), 2, "{of_it:?}");
    assert!(
        of_it[0].contains("chunky one") && of_it[1].contains("two"),
        "{of_it:?}"
    );
    product.release().await.expect("nothing is left");
}
