//! Text of others, as a person should see it: nothing in it hides or moves the rest.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with its control and format characters escaped, but for line breaks and tabs.
///
/// An escape sequence would be obeyed where the text is drawn on a terminal, and a character that turns the direction of
/// writing around makes a command look like another one. Joiners stay: whole scripts and emoji are written with them.
///
/// ```
/// use dsh_output::visible;
///
/// assert_eq!(visible("ls\n\u{1b}[2K\u{202e}"), "ls\n\\u{1b}[2K\\u{202e}");
/// assert_eq!(visible("naïve 👩\u{200d}🚀"), "naïve 👩\u{200d}🚀");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |c| hides(c) && !matches!(c, '\n' | '\t'))
}

/// As [`visible`], on one line: line breaks and tabs are escaped, too.
///
/// ```
/// assert_eq!(dsh_output::visible_line("one\n\ttwo"), r"one\n\ttwo");
/// ```
pub fn visible_line(text: &str) -> Cow<'_, str> {
    escaped(text, hides)
}

fn escaped(text: &str, hides: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hides) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hides(c) {
            // Writing to a string cannot fail.
            true => drop(write!(shown, "{}", c.escape_default())),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn hides(c: char) -> bool {
    let format = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    format || c.is_control()
}
