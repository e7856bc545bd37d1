//! Plain text helpers: one line, caps, ages, numbers.

/// The most characters a label has in a list or a notice.
const LABEL_CHARS: usize = 200;

/// A label as one line of at most 200 characters.
pub(crate) fn label_line(label: &str) -> String {
    capped(&one_line(label), LABEL_CHARS)
}

/// Text on one line: every run of white space with a line break in it, and every control character, is one space.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut rest = text.trim();
    while let Some(at) = rest.find(breaks) {
        line.push_str(rest[..at].trim_end());
        line.push(' ');
        rest = rest[at..].trim_start_matches(|c: char| c.is_whitespace() || breaks(c));
    }
    line.push_str(rest);
    line
}

/// At most `limit` characters; what was cut shows as an ellipsis, which counts.
pub(crate) fn capped(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A number as JSON writes it; what JSON cannot write is `null`.
pub(crate) fn json_number(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    // Negative zero is written without its sign.
    (number + 0.0).to_string()
}

/// An age for people: `12s`, `3m 4s`, `2h 5m`.
pub(crate) fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests;
