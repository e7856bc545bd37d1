//! Output in quantities and encodings that broke other systems.

use dsh_testkit::eventually;
use serde_json::json;
use tests::{Server, ServerOptions};

/// Resident memory of a process in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a size");
    line.split_whitespace()
        .nth(1)
        .and_then(|size| size.parse().ok())
        .expect("a number")
}

/// The `N` of `[N bytes omitted here; …]`, and how long the text is without such notes.
fn omitted(text: &str) -> (u64, u64) {
    let mut omitted = 0;
    let mut kept = 0;
    for line in text.split_inclusive('\n') {
        match line
            .strip_prefix('[')
            .and_then(|line| line.split_once(" bytes omitted here; "))
        {
            Some((number, _)) => omitted += number.parse::<u64>().expect("a number of bytes"),
            None => kept += line.len() as u64,
        }
    }
    (omitted, kept)
}

#[tokio::test]
async fn five_megabytes_keep_both_ends_and_an_exact_count() {
    let mut server = Server::start().await;
    let reply = server
        .bash("echo FIRST; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo LAST")
        .await;
    let text = reply.ok();
    assert!(text.starts_with("FIRST\n"), "the head is kept");
    assert!(text.trim_end().ends_with("LAST"), "the tail is kept");
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let (omitted, _) = omitted(text);
    let shown = text.matches('x').count() as u64;
    // An x may stand in the path of the note; it names at most that many.
    let note: u64 = text
        .lines()
        .filter(|line| line.contains("bytes omitted here"))
        .map(|line| line.matches('x').count() as u64)
        .sum();
    assert_eq!(
        omitted + shown - note,
        5_000_000,
        "every byte is shown or counted"
    );
    server.close().await;
}

#[tokio::test]
async fn the_note_tells_where_the_rest_can_be_read() {
    let mut server = Server::start().await;
    let reply = server.bash("seq 1 100000").await;
    let note = reply
        .ok()
        .lines()
        .find(|line| line.contains("bytes omitted here"))
        .expect("a note")
        .to_owned();
    let (path, range) = note
        .split_once("full output: ")
        .and_then(|(_, rest)| rest.split_once(" bytes "))
        .expect("a path and a range");
    let (from, to) = range.trim_end_matches(']').split_once('-').expect("a range");
    let (from, to): (usize, usize) = (from.parse().expect("a number"), to.parse().expect("a number"));
    let length = to - from + 1;
    let again = server
        .bash(&format!(
            "tail -c +{} '{path}' | head -c {length} | wc -c",
            from + 1
        ))
        .await;
    assert_eq!(again.ok().trim(), length.to_string(), "{note}");
    server.close().await;
}

#[tokio::test]
async fn endless_output_is_bounded_in_memory_and_on_disk() {
    let config = "[bash]\nmax_spill_bytes = 1000000\n";
    let mut server = Server::start_with(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .await;
    let id = server.background("yes").await;
    let uri = format!("dsh://task/{id}");
    // Far more than the budgets has passed through before anything is measured.
    for _ in 0..50 {
        server.request("resources/read", json!({"uri": uri})).await;
    }
    let before = resident_kib(server.pid());
    server.bash("sleep 1").await;
    let after = resident_kib(server.pid());
    assert!(after < before + 20_000, "{before} KiB grew to {after} KiB");
    let disk = server.bash("du -sb \"$TMPDIR\" | cut -f1").await;
    let bytes: u64 = disk.ok().trim().parse().expect("a number");
    assert!(bytes < 3_000_000, "{bytes} bytes on disk");
    server.kill(&id).await;
    let reply = server.wait(&id).await;
    assert!(reply.ok().contains("bytes omitted here"), "the loss is counted");
    assert!(reply.ok().len() < 200_000);
    server.close().await;
}

#[tokio::test]
async fn past_the_disk_cap_the_first_and_the_last_line_stay_and_the_rest_is_counted() {
    let config = "[bash]\nmax_spill_bytes = 1000000\n";
    let mut server = Server::start_with(ServerOptions {
        config,
        ..ServerOptions::default()
    })
    .await;
    let reply = server
        .bash("echo FIRST; head -c 2000000 /dev/zero | tr '\\0' x; echo; echo LAST")
        .await;
    let text = reply.ok();
    assert!(text.starts_with("FIRST\nxxx") && text.ends_with("xxx\nLAST\n"));
    let (left_out, kept) = omitted(text);
    // The lines with the notes end what they stand in: a newline of its own before each.
    let notes = text.matches(" bytes omitted here; ").count() as u64;
    let newlines_of_ours = (kept + left_out)
        .checked_sub(2_000_012)
        .expect("nothing is lost uncounted");
    assert!(newlines_of_ours <= notes, "{left_out} + {kept}");
    server.close().await;
}

#[tokio::test]
async fn a_character_that_arrives_in_two_pieces_is_whole() {
    let mut server = Server::start().await;
    let id = server
        .background("printf 'caf\\xc3'; touch half; until [ -e go ]; do sleep 0.02; done; printf '\\xa9\\n'")
        .await;
    server.room.made("half").await;
    let uri = format!("dsh://task/{id}");
    let read = server.request("resources/read", json!({"uri": uri})).await;
    let text = read["result"]["contents"][0]["text"]
        .as_str()
        .expect("text")
        .to_owned();
    assert!(!text.contains('\u{fffd}'), "{text}");
    let first = server.output(&id).await;
    assert!(!first.ok().contains('\u{fffd}'), "{first:?}");
    server.room.go();
    let second = server.wait(&id).await;
    let body = |text: &str| {
        text.lines()
            .next()
            .unwrap_or_default()
            .replace("(no new output)", "")
    };
    assert_eq!(format!("{}{}", body(first.ok()), body(second.ok())), "café");
    server.close().await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_shown_as_such_and_break_nothing() {
    let mut server = Server::start().await;
    assert_eq!(server.bash("printf '\\xf0'").await.ok(), "\u{fffd}");
    assert!(server.bash("head -c 1000 /dev/urandom").await.ok().len() < 20_000);
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}

#[tokio::test]
async fn progress_frames_and_colours_do_not_flood_the_model() {
    let mut server = Server::start().await;
    let reply = server
        .bash("for i in $(seq 2000); do printf '\\r%d%%' $i; done; echo; printf '\\033[31mred\\033[0m\\n'")
        .await;
    assert_eq!(reply.ok(), "2000%\nred\n");
    server.close().await;
}

#[tokio::test]
async fn both_streams_are_kept_apart_by_default() {
    let mut server = Server::start().await;
    assert_eq!(
        server.bash("echo a; echo b >&2; echo c").await.ok(),
        "a\nc\n[stderr]\nb\n"
    );
    server.close().await;
}

#[tokio::test]
async fn spilled_output_goes_away_with_the_session() {
    let mut server = Server::start().await;
    server.background("seq 1 200000").await;
    let tmp = server.room.tmp();
    eventually("something is spilled", || {
        std::fs::read_dir(&tmp).is_ok_and(|mut files| files.next().is_some())
    })
    .await;
    // Closing asserts that no temporary file is left.
    server.close().await;
}

/// As on a disk that is full, except that the system sends a signal as well.
#[tokio::test]
async fn a_limit_of_file_sizes_ends_the_file_and_not_the_server() {
    let mut server = Server::start().await;
    let mut prlimit = std::process::Command::new("prlimit");
    prlimit.args(["--pid", &server.pid().to_string(), "--fsize=200000:200000"]);
    assert!(prlimit.status().expect("prlimit runs").success());
    let reply = server.bash("seq 1 100000").await;
    let (omitted, kept) = omitted(reply.ok());
    // A note stands on a line of its own, which may end a line of the output early.
    let all = 588_895;
    assert!((all..all + 3).contains(&(omitted + kept)), "{omitted} + {kept}");
    assert!(reply.ok().starts_with("1\n2\n") && reply.ok().ends_with("\n100000\n"));
    assert!(reply.ok().contains("-199999]") && reply.ok().contains("no longer available"));
    assert_eq!(server.bash("echo alive").await.ok(), "alive\n");
    server.close().await;
}

#[tokio::test]
async fn three_floods_keep_the_server_small() {
    tests::output::three_floods(std::time::Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polls_at_the_very_moment_of_an_end_lose_and_repeat_nothing() {
    tests::output::polls_at_the_end(200).await;
}
