//! The tail for notices, and one stream alone.

mod common;

use common::{in_memory, masked, sections, spilling};
use dsh_output::{OutputSource, Stream};
use expect_test::expect;

#[test]
fn the_tail_is_the_last_rendered_lines_of_both_streams() {
    let log = in_memory(1_000);
    let reader = sections(&log);
    assert_eq!(reader.tail(5, 400), "");
    log.append(Stream::Stdout, b"1\n2\n3\n4\n");
    log.append(Stream::Stderr, b"\x1b[31merror\x1b[0m: no\n");
    log.append(Stream::Stdout, b" 10%\r 99%\r\n\n");
    assert_eq!(reader.tail(5, 400), "2\n3\n4\nerror: no\n 99%");
    assert_eq!(reader.tail(5, 15), "error: no\n 99%");
    assert_eq!(reader.tail(1, 400), " 99%");
    assert_eq!(reader.tail(0, 400), "");
    assert_eq!(reader.tail(5, 0), "");
    assert_eq!(reader.read_from(0, 0).next, log.len());
}

#[test]
fn the_tail_cuts_a_long_line_at_a_character() {
    let log = in_memory(64_000);
    log.append(Stream::Stdout, "é".repeat(10_000).as_bytes());
    let tail = sections(&log).tail(5, 399);
    assert_eq!(tail, "é".repeat(199));
    log.append(Stream::Stdout, b"\nlast");
    assert_eq!(sections(&log).tail(5, 400), "last");
}

#[test]
fn the_tail_never_contains_a_note() {
    let log = in_memory(20);
    log.append(Stream::Stdout, &[b'x'; 5_000]);
    log.append(Stream::Stdout, b"\nlast");
    assert_eq!(sections(&log).tail(5, 400), "xxxxx\nlast");
}

#[test]
fn c24_each_stream_has_its_own_budget() {
    let spilling = spilling(300, 10_000);
    let log = &spilling.log;
    for index in 0..50 {
        log.append(Stream::Stdout, format!("out {index:05}\n").as_bytes());
        log.append(Stream::Stderr, format!("err {index:05}\n").as_bytes());
    }
    log.close();
    let stdout = log.stream_texts(u64::MAX, 500, 500).0;
    assert!(!stdout.truncated);
    assert_eq!(
        stdout.text,
        (0..50)
            .map(|index| format!("out {index:05}\n"))
            .collect::<String>()
    );
    let stderr = log.stream_texts(u64::MAX, 40, 40).1;
    assert!(stderr.truncated);
    expect![[r#"
        err 00000
        err 00001
        [460 bytes omitted here; full output: FILE bytes 50-959]
        err 00048
        err 00049
    "#]]
    .assert_eq(&masked(log, &stderr.text));
}

#[test]
fn c25_a_cut_stream_has_its_ends_within_the_budget_and_all_of_it_in_the_file() {
    let spilling = spilling(500, 1_000_000);
    let log = &spilling.log;
    for index in 1..=200 {
        log.append(Stream::Stdout, format!("line {index}\n").as_bytes());
    }
    log.close();
    let text = log.stream_texts(u64::MAX, 500, 500).0;
    assert!(text.truncated);
    assert!(text.text.starts_with("line 1\n") && text.text.ends_with("line 200\n"));
    let shown: usize = text
        .text
        .lines()
        .filter(|line| !line.starts_with('['))
        .map(|line| line.len() + 1)
        .sum();
    assert!(
        (499..=501).contains(&shown),
        "{shown}: the cuts may add one newline, and fall within lines"
    );
    let file = std::fs::read_to_string(log.spill_path().unwrap()).unwrap();
    assert!(file.starts_with("line 1\n") && file.ends_with("\nline 200\n"));
}

#[test]
fn a_stream_survives_a_flood_of_the_other() {
    let spilling = spilling(1_000, 10_000_000);
    let log = &spilling.log;
    log.append(Stream::Stdout, &[b'x'; 100_000]);
    log.append(Stream::Stderr, b"the reason\n");
    log.append(Stream::Stdout, &[b'x'; 100_000]);
    assert_eq!(log.stream_texts(u64::MAX, 500, 500).1.text, "the reason\n");
}

#[test]
fn both_streams_can_be_told_up_to_the_same_offset() {
    let log = in_memory(1_000);
    log.append(Stream::Stdout, b"out\n");
    log.append(Stream::Stderr, b"err\n");
    let to = log.len();
    let stdout = log.stream_texts(to, 500, 500).0;
    log.append(Stream::Stderr, b"later\n");
    let stderr = log.stream_texts(to, 500, 500).1;
    assert_eq!((stdout.text.as_str(), stderr.text.as_str()), ("out\n", "err\n"));
    assert_eq!(sections(&log).read_from(to, 500).text, "[stderr]\nlater\n");
}

#[test]
fn a_character_cut_by_the_offset_is_told_by_whoever_reads_on() {
    let log = in_memory(1_000);
    log.append(Stream::Stdout, &"é".as_bytes()[..1]);
    let to = log.len();
    log.append(Stream::Stdout, &"é".as_bytes()[1..]);
    assert_eq!(log.stream_texts(to, 500, 500).0.text, "");
    assert_eq!(sections(&log).read_from(to, 500).text, "é");
}
