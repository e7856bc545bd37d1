//! Bytes of a flood that nobody looked at.

mod common;

use common::{in_memory, sections, spilling, whole};
use dsh_output::{OutputSource, Rendering, Stream};

#[test]
fn bytes_may_be_skipped_once_only_the_tail_is_kept() {
    let log = in_memory(10);
    assert_eq!(log.keeps_last(), None, "the head is not full");
    log.append(Stream::Stdout, b"0123456");
    assert_eq!(log.keeps_last(), Some(5));

    let spilling = spilling(10, 20);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"0123456789");
    assert_eq!(log.keeps_last(), None, "a file may come");
    log.append(Stream::Stdout, b"abcdefghi");
    assert_eq!(log.keeps_last(), None, "the file grows");
    log.append(Stream::Stdout, b"j");
    assert_eq!(log.keeps_last(), Some(5));
}

#[test]
fn skipped_bytes_count_and_are_missing() {
    let spilling = spilling(10, 8);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"0123456789");
    log.append(Stream::Stdout, b"abc");
    log.append_after(Stream::Stderr, 1_000, b"vwxyz");
    assert_eq!(log.len(), 1_018);
    let read = log.reader(Rendering::Interleaved).read_from(0, usize::MAX);
    assert_eq!(
        read.text,
        "01234567\n[1005 bytes omitted here; no longer available]\nvwxyz"
    );
    assert_eq!((read.next, read.omitted), (1_018, 1_005));
    // They belong to the stream that they came from.
    let (stdout, stderr) = log.stream_texts(u64::MAX, 100, 100);
    assert_eq!(
        stdout.text,
        "01234567\n[5 bytes omitted here; no longer available]\n"
    );
    assert_eq!(
        stderr.text,
        "[1000 bytes omitted here; no longer available]\nvwxyz"
    );
    log.append(Stream::Stderr, b"!");
    assert_eq!(sections(log).read_from(1_000, 100).omitted, 14);
}

#[test]
fn skipping_too_early_costs_bytes_and_no_truth() {
    for cap in [0, 6, 100] {
        let spilling = spilling(10, cap);
        let log = &spilling.log;
        log.append(Stream::Stdout, b"ab");
        log.append_after(Stream::Stdout, 3, b"cd");
        log.append(Stream::Stdout, b"efg");
        log.append_after(Stream::Stdout, 2, b"");
        assert_eq!(
            whole(log),
            "ab\n[10 bytes omitted here; no longer available]\n",
            "with {cap} bytes on disk"
        );
        log.append(Stream::Stdout, b"hi");
        log.close();
        assert_eq!(whole(log), "ab\n[10 bytes omitted here; no longer available]\nhi");
    }
}
