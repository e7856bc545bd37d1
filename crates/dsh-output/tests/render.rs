//! Text for the model.

use dsh_output::render_for_model;

#[track_caller]
fn shows(raw: &str, text: &str) {
    assert_eq!(render_for_model(raw.as_bytes()), text, "{raw:?}");
}

#[test]
fn progress_shows_its_last_frame() {
    let mut raw = String::new();
    for percent in 0..=10_000 {
        raw += &format!("\r{percent}%");
    }
    shows(&raw, "10000%");
    shows("10%\r20%\r\n", "20%\n");
    shows("10%\r20%\rdone\nnext\n", "done\nnext\n");
    shows("10%\r", "10%");
    shows("100%\r5%", "5%");
    shows("50%\r\x1b[Kdone", "done");
    shows("50%\r\x1b[K", "");
    shows("50%\x1b[2K\rdone\n", "done\n");
    shows("50%\x1b[1Gdone\n", "done\n");
    shows("50%\x1b[0G\x1b[0K", "");
    shows("|\u{8}/\u{8}-\u{8}", "-");
    shows("bo\u{8}ol\u{8}ld", "bold");
    shows("ab\r\u{8}X", "X");
    shows("abc\u{8}\x1b[2K\u{8}x", "x");
    shows("\u{8}\u{8}a\u{8}\u{8}\u{8}b", "b");
}

#[test]
fn line_endings_of_terminals_are_newlines() {
    shows("a\r\nb\r\r\n", "a\nb\n");
    shows("\r\n\n\r", "\n\n");
}

#[test]
fn escape_sequences_are_removed() {
    shows("\x1b[1;31mred\x1b[0m \x1b[38;5;200mx\x1b[m", "red x");
    shows("\x1b[?25lhidden\x1b[?25h\x1b[2J\x1b[10;20H", "hidden");
    shows("\x1b]0;title ✓\x07text", "text");
    shows("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link");
    shows("\x1bPq#0;2;0\x1b\\after\x1b_apc\x1b\\!", "after!");
    shows("\x1b(B\x1b7\x1b8\x1b=\x1bMx", "x");
    shows("\x1b[3\x1b[1mx", "x");
    shows("\x1b[12é", "é");
    shows("\x1b[3\u{18}x", "x");
}

#[test]
fn an_unfinished_sequence_ends_with_its_line() {
    shows("a\x1b]0;no end\nb", "a\nb");
    shows("a\x1b[31\nb", "a\nb");
    shows("a\x1b", "a");
}

#[test]
fn control_characters_are_visible_and_harmless() {
    shows("a\0b\x01\x7f\t|", "a␀b␁␡\t|");
    shows("bell\x07", "bell");
    shows("\u{85}\u{9b}31m", "\u{fffd}\u{fffd}31m");
    assert_eq!(
        render_for_model(b"a\xff\xe2\x82b\xc3"),
        "a\u{fffd}\u{fffd}b\u{fffd}"
    );
}

#[test]
fn a_command_can_print_what_looks_like_a_note_but_no_control_character() {
    let all: Vec<u8> = (0..=255).collect();
    let text = render_for_model(&all);
    assert!(
        text.chars()
            .all(|character| !character.is_control() || "\n\t".contains(character)),
        "{text:?}"
    );
}
