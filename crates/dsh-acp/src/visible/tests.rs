use serde_json::json;

use super::{visible, visible_value};

#[test]
fn what_hides_is_escaped_and_nothing_else_is() {
    assert_eq!(
        visible("\u{1b}[2Krm \u{202e}x\u{200b}\r\u{9b}"),
        r"\u{1b}[2Krm \u{202e}x\u{200b}\r\u{9b}"
    );
    let plain = "cd 'ü' && \\\n\techo \"日本\" 👍";
    assert_eq!(visible(plain), plain);
}

#[test]
fn every_text_of_a_value_is_made_visible() {
    assert_eq!(
        visible_value(&json!({"a\u{202e}": ["\u{1b}", 1, null]})),
        json!({r"a\u{202e}": [r"\u{1b}", 1, null]})
    );
}
