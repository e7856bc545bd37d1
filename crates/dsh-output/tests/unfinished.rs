//! Characters and escape sequences that the edge of a reply cuts in two.

mod common;

use common::{in_memory, sections, spilling, whole};
use dsh_output::{OutputRead, OutputSource, Rendering, Stream};

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
fn the_beginning_of_a_character_is_missing_with_its_end() {
    let log = in_memory(1_000);
    let reader = sections(&log);
    log.append(Stream::Stdout, b"a\xe2\x82");
    log.append(Stream::Stderr, b"b\n");
    let read = reader.read_from(0, 100);
    assert_eq!((read.text.as_str(), read.next), ("a\n[stderr]\nb\n", 5));
    log.append(Stream::Stdout, b"\xac!");
    let read = reader.read_from(5, 1);
    assert_eq!(
        (read.text.as_str(), read.omitted),
        ("[3 bytes omitted here; no longer available]\n!", 3)
    );
    // So it is if the gap begins within the reply.
    let read = reader.read_from(1, 1);
    assert_eq!(read.omitted, 5, "{read:?}");
}

#[test]
fn a_character_that_lies_in_memory_and_file_is_cut_as_any_other() {
    let spilling = spilling(4, 100);
    spilling.log.append(Stream::Stdout, "a€€bcd".as_bytes());
    let read = sections(&spilling.log).read_from(0, 6);
    assert!(
        read.text.starts_with("a\n[6 bytes omitted here; ") && read.text.ends_with("]\nbcd"),
        "{read:?}"
    );
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
