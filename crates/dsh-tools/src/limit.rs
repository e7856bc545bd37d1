//! Cutting text to a number of bytes.

/// The longest start of `text` that has at most `max_bytes` bytes and ends on a character boundary.
pub fn head_within(text: &str, max_bytes: usize) -> &str {
    let mut end = max_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of `text` that has at most `max_bytes` bytes and begins on a character boundary.
pub fn tail_within(text: &str, max_bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(max_bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Added where a result was cut.
pub const RESULT_TRUNCATED: &str = "\n[result truncated]";

/// `text` in at most `max_bytes` bytes: as it is, or its start and [`RESULT_TRUNCATED`], or, where not even
/// that fits, its start alone.
pub fn bounded_result(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    match max_bytes.checked_sub(RESULT_TRUNCATED.len()) {
        Some(room) => format!("{}{RESULT_TRUNCATED}", head_within(text, room)),
        None => head_within(text, max_bytes).to_owned(),
    }
}
