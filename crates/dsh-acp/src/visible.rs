//! Text that a model wrote, as a person should see it before saying yes: nothing in it hides or moves the rest.

use serde_json::Value;

/// The text with its control and format characters escaped, but for line breaks and tabs.
///
/// An escape sequence would be obeyed where a title is drawn on a terminal, and a character that turns the direction of
/// writing around makes a command look like another one.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match hides(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// The value with every text in it made visible.
pub(crate) fn visible_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(text)),
        Value::Array(items) => items.iter().map(visible_value).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (visible(key), visible_value(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn hides(c: char) -> bool {
    let format = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    format || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests;
