//! Reading ranges of a log: sections, notes, cursors, unfinished characters.

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
fn a_note_stands_between_two_groups_of_sections() {
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
fn c231_c232_c233_c235_a_cut_never_makes_a_replacement_character() {
    for (text, max) in [
        ("€€€€", 4),
        ("€€€€", 6),
        ("ab😀😀cd", 6),
        ("€", 2),
        ("aé", 2),
        ("éab", 2),
    ] {
        let log = in_memory(1_000);
        log.append(Stream::Stdout, text.as_bytes());
        log.close();
        let read = sections(&log).read_from(0, max);
        assert!(!read.text.contains('\u{fffd}'), "{read:?}");
        let shown: usize = read
            .text
            .lines()
            .filter(|line| !line.starts_with('['))
            .map(str::len)
            .sum();
        assert_eq!(read.omitted, (text.len() - shown) as u64, "{read:?}");
        assert!(shown <= max);
    }
}

#[test]
fn c226_c234_c239_a_character_across_the_edges_of_memory_stays_whole() {
    let spilling = spilling(4, 100);
    for byte in "a😀é".bytes() {
        spilling.log.append(Stream::Stdout, &[byte]);
    }
    assert_eq!(whole(&spilling.log), "a😀é");
}

#[test]
fn an_unfinished_character_at_the_live_end_is_left_for_the_next_read() {
    let log = in_memory(1_000);
    let reader = sections(&log);
    log.append(Stream::Stdout, b"a\xe2\x82");
    let read = reader.read_from(0, 100);
    assert_eq!(
        read,
        OutputRead {
            text: "a".into(),
            next: 1,
            omitted: 0
        }
    );
    assert_eq!(
        reader.read_from(1, 100),
        OutputRead {
            text: String::new(),
            next: 1,
            omitted: 0
        }
    );
    log.append(Stream::Stdout, b"\xac!");
    assert_eq!(reader.read_from(1, 100).text, "€!");
    log.append(Stream::Stdout, b"\xf0\x9f");
    assert_eq!(reader.read_from(5, 100).next, 5);
    log.close();
    assert_eq!(
        reader.read_from(5, 100),
        OutputRead {
            text: "\u{fffd}".into(),
            next: 7,
            omitted: 0
        }
    );
}

#[test]
fn an_unfinished_character_never_hides_the_other_stream() {
    let log = in_memory(1_000);
    let reader = sections(&log);
    log.append(Stream::Stdout, b"a\xe2\x82");
    log.append(Stream::Stderr, b"password: ");
    let read = reader.read_from(0, 100);
    assert_eq!((read.text.as_str(), read.next), ("a\n[stderr]\npassword: ", 13));
    log.append(Stream::Stderr, b"ok");
    log.append(Stream::Stdout, b"\xac!");
    assert_eq!(reader.read_from(13, 100).text, "€!\n[stderr]\nok");
    assert_eq!(log.reader(Rendering::Interleaved).read_from(13, 100).text, "ok€!");
}

#[test]
fn an_escape_sequence_cut_by_a_read_is_never_shown() {
    let log = in_memory(10_000);
    let reader = sections(&log);
    log.append(Stream::Stdout, b"red: \x1b[3");
    let read = reader.read_from(0, 100);
    assert_eq!((read.text.as_str(), read.next), ("red: ", 5));
    log.append(Stream::Stdout, b"1mtext");
    assert_eq!(reader.read_from(5, 100).text, "text");
    // At a fixed end the reply that has the last byte knows what it belongs to.
    assert_eq!(reader.read_range(0, 7, 100).text, "red: ");
    assert_eq!(reader.read_from(7, 100).text, "text");
    // Behind a gap it belongs to nothing.
    assert_eq!(
        reader.read_from(7, 1).text,
        "[6 bytes omitted here; no longer available]\nt"
    );
}

#[test]
fn a_reader_does_not_wait_for_an_endless_escape_sequence() {
    let log = in_memory(10_000);
    log.append(Stream::Stdout, b"\x1b]0;");
    log.append(Stream::Stdout, &[b'x'; 600]);
    assert_eq!(sections(&log).read_from(0, 10_000).next, 604);
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
    let stdout = log.stream_text(Stream::Stdout, 500);
    assert!(!stdout.truncated);
    assert_eq!(
        stdout.text,
        (0..50)
            .map(|index| format!("out {index:05}\n"))
            .collect::<String>()
    );
    let stderr = log.stream_text(Stream::Stderr, 40);
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
fn a_stream_survives_a_flood_of_the_other() {
    let spilling = spilling(1_000, 10_000_000);
    let log = &spilling.log;
    log.append(Stream::Stdout, &[b'x'; 100_000]);
    log.append(Stream::Stderr, b"the reason\n");
    log.append(Stream::Stdout, &[b'x'; 100_000]);
    assert_eq!(log.stream_text(Stream::Stderr, 500).text, "the reason\n");
}
