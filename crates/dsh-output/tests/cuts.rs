//! What a budget leaves of a text: exact counts, no character cut in two.

#![expect(clippy::expect_used, reason = "a helper of tests fails its test")]

mod common;

use common::{in_memory, sections};
use dsh_output::OutputSource;
use dsh_output::Stream::Stdout;

/// Reads all of `chunks` with a budget; what is shown before and after the note, and how much is not.
fn cut(chunks: &[&[u8]], max: usize) -> (String, String, u64) {
    let log = in_memory(1_000);
    for chunk in chunks {
        log.append(Stdout, chunk);
    }
    log.close();
    parted(&sections(&log).read_from(0, max).text)
}

fn parted(text: &str) -> (String, String, u64) {
    match text.split_once('[') {
        None => (text.to_owned(), String::new(), 0),
        Some((head, rest)) => {
            let (count, tail) = rest
                .split_once(" bytes omitted here; no longer available]\n")
                .expect("a note");
            let head = head.strip_suffix('\n').unwrap_or(head);
            (head.to_owned(), tail.to_owned(), count.parse().expect("a number"))
        }
    }
}

#[track_caller]
fn shows(chunks: &[&[u8]], max: usize, head: &str, tail: &str, omitted: u64) {
    assert_eq!(
        cut(chunks, max),
        (head.to_owned(), tail.to_owned(), omitted),
        "{chunks:?}"
    );
}

#[test]
fn c218_c219_c220_c222_c223_c224_c225_counts_are_exact_whatever_the_chunks() {
    shows(&[b"abc", b"de", b"fgh"], 4, "ab", "gh", 4);
    shows(&[b"abcdefgh"], 4, "ab", "gh", 4);
    shows(&[b"11", b"22", b"33", b"44"], 3, "1", "44", 5);
    shows(&[b"abcde", b"fghij"], 6, "abc", "hij", 4);
    shows(&[b"abcde", b"fghij"], 10, "abcdefghij", "", 0);
    shows(&[b"abc"], 100, "abc", "", 0);
}

#[test]
fn c216_c228_c229_no_budget_shows_nothing_and_nothing_leaves_nothing_out() {
    shows(&[b"abc"], 0, "", "", 3);
    shows(&[], 0, "", "", 0);
    shows(&[], 100, "", "", 0);
}

#[test]
fn c221_the_tail_alone_can_be_asked_for() {
    let log = in_memory(1_000);
    log.append(Stdout, b"helloworld");
    assert_eq!(sections(&log).tail(1, 4), "orld");
}

#[test]
fn c227_c235_c237_c238_a_gap_trims_parts_of_characters_on_both_sides() {
    // Two bytes each: the cuts fall within the second and the second last.
    shows(&["éééé".as_bytes()], 6, "é", "é", 4);
    // Four bytes each.
    shows(&["😀😀😀".as_bytes()], 6, "", "", 12);
    shows(&["😀😀😀".as_bytes()], 10, "😀", "😀", 4);
    // Parts of two characters on both sides of a gap make no third.
    shows(
        &["aé".as_bytes(), "xxxx".as_bytes(), "éb".as_bytes()],
        4,
        "a",
        "b",
        8,
    );
}

#[test]
fn c240_c241_bytes_that_begin_no_character_are_not_waited_for() {
    shows(&[b"ab\x80\x80xxxxxx"], 8, "ab\u{fffd}\u{fffd}", "xxxx", 2);
    shows(&[b"abc\xffxxxxxx"], 8, "abc\u{fffd}", "xxxx", 2);
}
