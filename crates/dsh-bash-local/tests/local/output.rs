//! What is kept of the output.

use std::time::{Duration, Instant};

use dsh_bash::{BashRequest, EndReason, ShellExit};
use dsh_bash_local::LocalBashConfig;
use dsh_output::OutputSource;
use dsh_testkit::eventually;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, config, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c24_c51_each_stream_has_its_budget() {
    let fixture = Fixture::with(LocalBashConfig {
        max_output_bytes: 100.0,
        ..config()
    });
    let command = "printf 'o%.0s' $(seq 500); printf 'e%.0s' $(seq 500) >&2";
    let request = BashRequest {
        stdout_max_bytes: Some(500.0),
        ..fixture.request(command)
    };
    let result = fixture
        .run_request(request, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(
        (result.stdout.text, result.stdout.truncated),
        ("o".repeat(500), false)
    );
    assert!(result.stderr.truncated);
    let (notes, kept): (Vec<_>, Vec<_>) = result.stderr.text.lines().partition(|line| line.starts_with('['));
    assert_eq!(kept.concat(), "e".repeat(100));
    assert!(
        notes[0].starts_with("[400 bytes omitted here; full output: "),
        "{notes:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c26_output_of_exactly_the_budget_is_whole() {
    let fixture = Fixture::with(LocalBashConfig {
        max_output_bytes: 500.0,
        ..config()
    });
    let result = fixture.run("printf 'x%.0s' $(seq 500)").await;
    assert_eq!(
        (result.stdout.text, result.stdout.truncated),
        ("x".repeat(500), false)
    );
    assert_eq!(result.process.output().spill_path(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c25_c42_c43_long_output_keeps_both_ends_and_the_rest_is_on_disk() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::with(LocalBashConfig {
        max_output_bytes: 500.0,
        ..config()
    });
    let result = fixture.run("for i in $(seq 400); do echo line-$i; done").await;
    let text = &result.stdout.text;
    assert!(
        text.starts_with("line-1\n") && text.ends_with("line-400\n"),
        "{text}"
    );
    assert!(result.stdout.truncated && text.len() < 700);

    let path = result.process.output().spill_path().unwrap();
    assert!(
        text.contains(&format!("bytes omitted here; full output: {}", path.display())),
        "{text}"
    );
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.starts_with("line-1\n") && whole.ends_with("line-400\n"));
    assert_eq!(whole.lines().count(), 400);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    drop(result);
    dsh_testkit::eventually("the file goes with its last reader", || !path.exists()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_past_the_disk_cap_is_counted_and_both_ends_stay() {
    let fixture = Fixture::with(LocalBashConfig {
        max_spill_bytes: 1_000_000.0,
        ..config()
    });
    let result = fixture
        .run("echo FIRST; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo LAST")
        .await;
    assert_eq!(result.exit, ShellExit::Code(0));
    let text = &result.stdout.text;
    assert!(text.starts_with("FIRST\n") && text.ends_with("x\nLAST\n"));
    assert_eq!(result.told, 2_000_012);
    // What is shown and what is said to be missing add up to what was written.
    let omitted: u64 = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix('[')?
                .split_once(" bytes omitted here")
                .map(|(n, _)| n)
        })
        .map(|n| n.parse::<u64>().unwrap())
        .sum();
    let shown = text.lines().filter(|line| !line.contains("bytes omitted here"));
    let xs: usize = shown.map(|line| line.matches('x').count()).sum();
    assert_eq!(xs as u64 + omitted + "FIRST\n\nLAST\n".len() as u64, 2_000_012);
}

/// What is left of a flood is exact to the byte, also where most of it was never looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ends_of_a_long_flood_are_exact() {
    const FIRST: u64 = 10_000_000;
    const LAST: u64 = 19_999_999;
    const BYTES: u64 = (LAST - FIRST + 1) * 9 + 3;
    let fixture = Fixture::with(LocalBashConfig {
        max_output_bytes: 1_000.0,
        max_spill_bytes: 5_000.0,
        ..config()
    });
    let process = fixture.start(&format!("seq {FIRST} {LAST}; printf end >&2"));
    process.ended().await;
    let read = process
        .output()
        .reader(dsh_output::Rendering::Interleaved)
        .read_from(0, usize::MAX);
    let lines = |from: u64, to: u64| -> String { (from..=to).map(|number| format!("{number}\n")).collect() };
    let (head, tail) = (lines(FIRST, FIRST + 600), lines(LAST - 600, LAST) + "end");
    let expected = format!(
        "{}\n[{} bytes omitted here; no longer available]\n{}",
        &head[..5_000],
        BYTES - 6_000,
        &tail[tail.len() - 1_000..]
    );
    assert_eq!(read.text, expected);
    assert_eq!((read.next, read.omitted), (BYTES, BYTES - 6_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_commands_share_a_cap_on_disk() {
    let fixture = Fixture::with(LocalBashConfig {
        max_output_bytes: 100.0,
        max_total_spill_bytes: 1_000.0,
        ..config()
    });
    let command = "head -c 700 /dev/zero | tr '\\0' x";
    let size = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().len();
    let first = fixture.run(command).await;
    let second = fixture.run(command).await;
    let third = fixture.run(command).await;
    let sizes = [&first, &second, &third].map(|result| result.process.output().spill_path().map(size));
    assert_eq!(sizes, [Some(700), Some(300), None]);
    let lost = "bytes omitted here; no longer available]";
    let says_so = [first, second, third].map(|result| result.stdout.text.contains(lost));
    assert_eq!(says_so, [false, true, true]);

    // They went, and their files with them.
    let fourth = fixture.run(command).await;
    assert_eq!(fourth.process.output().spill_path().map(size), Some(700));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_sees_text() {
    let fixture = Fixture::new();
    let progress = fixture
        .run("for i in $(seq 100); do printf '\\r%d%%' $i; done; echo")
        .await;
    assert_eq!(progress.stdout.text, "100%\n");
    let colour = fixture.run("printf '\\033[31mred\\033[0m\\n'").await;
    assert_eq!(colour.stdout.text, "red\n");
    let split = fixture
        .run("printf '\\303'; sleep 0.05; printf '\\251\\n'; printf '\\360'")
        .await;
    assert_eq!(split.stdout.text, "é\n\u{fffd}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_comes_after_the_last_byte() {
    let fixture = Fixture::new();
    for round in 0..20 {
        let process = fixture.start(&format!("printf A; sleep 0.00{}; printf B", round % 10));
        process.ended().await;
        assert_eq!(text(&*process), "AB");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrival_order_is_kept_between_streams() {
    let fixture = Fixture::new();
    let process = fixture.start("echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c");
    process.ended().await;
    let log = process.output().reader(dsh_output::Rendering::Interleaved);
    assert_eq!(log.read_from(0, 100).text, "a\nb\nc\n");
}

/// Who asks for the end meets the exit: no time is left to read what is in the pipe.
#[tokio::test]
async fn what_was_written_before_the_exit_is_read_though_the_end_is_asked_for_at_that_moment() {
    let fixture = Fixture::with(LocalBashConfig {
        grace_ms: 0.001,
        drain_ms: 0.001,
        ..config()
    });
    let all: String = (1..=900).map(|number| format!("{number}\n")).collect();
    for round in 0..20 {
        let [up, go, done] = ["up", "go", "done"].map(|name| fixture.file(&format!("{name}-{round}")));
        let waits = format!("touch up-{round}; until [ -e go-{round} ]; do sleep 0.01; done");
        let process = fixture.start(&format!("{waits}; seq 900; exec touch done-{round}"));
        eventually("the command waits", || up.exists()).await;
        std::fs::write(go, "").unwrap();
        // Nobody reads meanwhile: this is the only thread.
        let since = Instant::now();
        while !done.exists() && since.elapsed() < Duration::from_secs(30) {
            std::thread::yield_now();
        }
        process.terminate(EndReason::Asked);
        process.ended().await;
        assert_eq!(text(&*process), all);
    }
}
