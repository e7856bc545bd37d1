//! Reading ranges of a log: sections, notes, cursors.

mod common;

use common::{in_memory, masked, sections, spilling, whole};
use dsh_output::{OutputRead, OutputSource, Rendering, Stream};
use expect_test::expect;

#[test]
fn c60_reads_never_repeat_and_any_range_can_be_read_again() {
    let log = in_memory(1_000);
    let reader = sections(&log);
    log.append(Stream::Stdout, b"first\n");
    let first = reader.read_from(0, 100);
    assert_eq!(
        first,
        OutputRead {
            text: "first\n".into(),
            next: 6,
            omitted: 0
        }
    );
    log.append(Stream::Stdout, b"second\n");
    log.close();
    let second = reader.read_from(first.next, 100);
    assert_eq!(
        second,
        OutputRead {
            text: "second\n".into(),
            next: 13,
            omitted: 0
        }
    );
    assert_eq!(
        reader.read_from(second.next, 100),
        OutputRead {
            text: String::new(),
            next: 13,
            omitted: 0
        }
    );
    assert_eq!(reader.read_range(0, 6, 100), first);
    assert_eq!(
        reader.read_range(2, 4, 100),
        OutputRead {
            text: "rs".into(),
            next: 4,
            omitted: 0
        }
    );
    assert_eq!(reader.read_from(99, 100).next, 13);
    assert_eq!(
        reader.read_range(5, 2, 100),
        OutputRead {
            text: String::new(),
            next: 5,
            omitted: 0
        }
    );
}

#[test]
fn c61_c62_c63_stderr_is_a_section_with_a_newline_before_it_only_if_needed() {
    let cases: [(&[u8], &[u8], &str); 5] = [
        (b"out\n", b"err\n", "out\n[stderr]\nerr\n"),
        (b"", b"err\n", "[stderr]\nerr\n"),
        (b"out", b"err\n", "out\n[stderr]\nerr\n"),
        (b"out", b"", "out"),
        (b"out", b"\x1b[0m", "out"),
    ];
    for (stdout, stderr, text) in cases {
        let log = in_memory(1_000);
        log.append(Stream::Stderr, stderr);
        log.append(Stream::Stdout, stdout);
        assert_eq!(whole(&log), text);
    }
}

#[test]
fn interleaved_keeps_the_order_of_arrival() {
    let log = in_memory(1_000);
    log.append(Stream::Stdout, b"a\n");
    log.append(Stream::Stderr, b"b\n");
    log.append(Stream::Stdout, b"c\n");
    assert_eq!(
        log.reader(Rendering::Interleaved).read_from(0, 100).text,
        "a\nb\nc\n"
    );
    assert_eq!(whole(&log), "a\nc\n[stderr]\nb\n");
}

#[test]
fn c26_exactly_at_the_budget_nothing_is_lost_and_no_file_is_made() {
    let spilling = spilling(500, 10_000);
    spilling.log.append(Stream::Stdout, &[b'x'; 500]);
    spilling.log.close();
    assert_eq!(whole(&spilling.log), "x".repeat(500));
    assert_eq!(spilling.log.spill_path(), None);
    assert_eq!(
        std::fs::read_dir(spilling.dir.path()).unwrap().count(),
        1,
        "only the lock"
    );
}

#[test]
fn without_a_file_memory_keeps_exactly_its_budget() {
    for chunk in [1, 3, 7, 26] {
        let log = in_memory(9);
        for bytes in b"abcdefghijklmnopqrstuvwxyz".chunks(chunk) {
            log.append(Stream::Stdout, bytes);
        }
        let read = sections(&log).read_from(0, 100);
        assert_eq!(
            read.text,
            "abcd\n[17 bytes omitted here; no longer available]\nvwxyz"
        );
        assert_eq!((read.next, read.omitted), (26, 17));
    }
}

#[test]
fn c28_c29_what_left_memory_is_read_from_the_file() {
    let spilling = spilling(10, 100);
    let (log, reader) = (&spilling.log, sections(&spilling.log));
    log.append(Stream::Stdout, b"0123456789abcdef");
    assert_eq!(
        std::fs::read(log.spill_path().unwrap()).unwrap(),
        b"0123456789abcdef"
    );
    assert_eq!(whole(log), "0123456789abcdef");
    log.append(Stream::Stderr, b"ghi");
    log.append(Stream::Stdout, b"j");
    assert_eq!(reader.read_range(3, 12, 100).text, "3456789ab");
    assert_eq!(reader.read_range(14, 20, 100).text, "efj\n[stderr]\nghi");
    assert_eq!(
        std::fs::read(log.spill_path().unwrap()).unwrap(),
        b"0123456789abcdefghij"
    );
}

#[test]
fn c31_c32_past_the_cap_the_file_keeps_its_prefix_and_the_note_says_what_is_gone() {
    let spilling = spilling(4, 8);
    let log = &spilling.log;
    for chunk in [&b"abcd"[..], b"efg", b"hijk", b"lmnopq"] {
        log.append(Stream::Stdout, chunk);
    }
    assert_eq!(std::fs::read(log.spill_path().unwrap()).unwrap(), b"abcdefgh");
    let read = sections(log).read_from(0, 100);
    assert_eq!(
        read.text,
        "abcdefgh\n[7 bytes omitted here; no longer available]\npq"
    );
    assert_eq!((read.next, read.omitted), (17, 7));

    let read = sections(log).read_from(0, 4);
    expect![[r#"
        ab
        [6 bytes omitted here; full output: FILE bytes 2-7]
        [7 bytes omitted here; no longer available]
        pq"#]]
    .assert_eq(&masked(log, &read.text));
    assert_eq!((read.next, read.omitted), (17, 13));
}

#[test]
fn a_large_unread_range_keeps_its_head_and_tail_and_the_rest_is_in_the_file() {
    // Everything still fits in memory: skipping alone makes the file necessary, also after the end.
    for closed_first in [false, true] {
        let spilling = spilling(1_000, 10_000);
        let (log, reader) = (&spilling.log, sections(&spilling.log));
        log.append(
            Stream::Stdout,
            b"line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n",
        );
        if closed_first {
            log.close();
        }
        let read = reader.read_range(7, u64::MAX, 14);
        expect![[r#"
            line 2
            [21 bytes omitted here; full output: FILE bytes 14-34]
            line 6
        "#]]
        .assert_eq(&masked(log, &read.text));
        assert_eq!((read.next, read.omitted), (42, 21));
        let file = std::fs::read(log.spill_path().unwrap()).unwrap();
        assert_eq!(&file[14..=34], b"line 3\nline 4\nline 5\n");
        assert_eq!(reader.read_range(14, 35, 100).text, "line 3\nline 4\nline 5\n");

        log.append(Stream::Stdout, b"late\n");
        log.close();
        let whole_file = std::fs::read(log.spill_path().unwrap()).unwrap();
        assert_eq!(whole_file.len(), if closed_first { 42 } else { 47 });
    }
}

#[test]
fn a_note_stands_between_two_groups_of_sections_with_headings_of_their_own() {
    let spilling = spilling(12, 1_000);
    let log = &spilling.log;
    log.append(Stream::Stdout, b"o1\n");
    log.append(Stream::Stderr, b"e1\n");
    log.append(Stream::Stdout, b"skipped\n");
    log.append(Stream::Stderr, b"e2\n");
    log.append(Stream::Stdout, b"o2\n");
    log.close();
    let read = sections(log).read_from(0, 12);
    expect![[r#"
        o1
        [stderr]
        e1
        [8 bytes omitted here; full output: FILE bytes 6-13]
        [stdout]
        o2
        [stderr]
        e2
    "#]]
    .assert_eq(&masked(log, &read.text));
    let ordered = log.reader(Rendering::Interleaved).read_from(0, 12);
    expect![[r#"
        o1
        e1
        [8 bytes omitted here; full output: FILE bytes 6-13]
        e2
        o2
    "#]]
    .assert_eq(&masked(log, &ordered.text));
}

#[test]
fn a_reply_without_room_says_so_and_moves_on() {
    let log = in_memory(100);
    log.append(Stream::Stdout, b"abc");
    let read = sections(&log).read_from(0, 0);
    let text = "[3 bytes omitted here; no longer available]\n".to_owned();
    assert_eq!(
        read,
        OutputRead {
            text,
            next: 3,
            omitted: 3
        }
    );
}

#[test]
fn text_without_a_newline_is_readable_at_once() {
    let log = in_memory(1_000);
    log.append(Stream::Stdout, b"Password: ");
    assert_eq!(whole(&log), "Password: ");
    log.append(Stream::Stderr, b"\r 10%\r 20%\r");
    assert_eq!(whole(&log), "Password: \n[stderr]\n 20%");
}

#[test]
fn c64_c65_a_lossy_read_names_the_file_and_keeps_the_section() {
    for (stream, header) in [(Stream::Stdout, ""), (Stream::Stderr, "[stderr]\n")] {
        let spilling = spilling(100, 10_000);
        spilling.log.append(stream, &[b'x'; 1_000]);
        let read = sections(&spilling.log).read_from(0, 100);
        let x = "x".repeat(50);
        let note = "[900 bytes omitted here; full output: FILE bytes 50-949]";
        assert_eq!(
            masked(&spilling.log, &read.text),
            format!("{header}{x}\n{note}\n{header}{x}")
        );
    }
}
