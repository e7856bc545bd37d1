use serde_json::json;

use super::visible_value;

#[test]
fn every_text_of_a_value_is_made_visible() {
    assert_eq!(
        visible_value(&json!({"a\u{202e}": ["\u{1b}", 1, null]})),
        json!({r"a\u{202e}": [r"\u{1b}", 1, null]})
    );
}
