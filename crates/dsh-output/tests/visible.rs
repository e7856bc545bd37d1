//! What is escaped where a person reads, and what is not.

use dsh_output::{visible, visible_line};

#[test]
fn what_hides_or_moves_is_escaped_and_nothing_else_is() {
    assert_eq!(
        visible("\u{1b}[2Krm \u{202e}x\u{2066}\u{200b}\r\u{9b}\u{7f}"),
        r"\u{1b}[2Krm \u{202e}x\u{2066}\u{200b}\r\u{9b}\u{7f}"
    );
    let plain = "cd 'ü' && \\\n\techo \"日本\" 👍 می\u{200c}خواهم e\u{301}";
    assert_eq!(visible(plain), plain);
}

#[test]
fn one_line_stays_one_line() {
    let shown = visible_line("a\nb\tc\r\n\u{2028}d\u{85}e\u{b}f");
    assert_eq!(shown, r"a\nb\tc\r\n\u{2028}d\u{85}e\u{b}f");
    assert_eq!(visible_line("plain 'text' \\ \"x\""), "plain 'text' \\ \"x\"");
}
