//! The wire forms, byte for byte.

use dsh_llm::{CallId, ContentBlock, text_of};

#[test]
fn a_call_id_is_its_text() {
    let id = CallId::new("call_7");
    assert_eq!(id.to_string(), "call_7");
    assert_eq!(id.as_str(), "call_7");
    assert_eq!(serde_json::to_string(&id).unwrap(), r#""call_7""#);
    assert_eq!(serde_json::from_str::<CallId>(r#""call_7""#).unwrap(), id);
    assert!(serde_json::from_str::<CallId>("7").is_err());
}

#[test]
fn a_block_is_tagged_by_its_type() {
    let block = ContentBlock::text("a\n\"b\"");
    let json = r#"{"type":"text","text":"a\n\"b\""}"#;
    assert_eq!(serde_json::to_string(&block).unwrap(), json);
    assert_eq!(serde_json::from_str::<ContentBlock>(json).unwrap(), block);
    assert_eq!(block.as_text(), Some("a\n\"b\""));
}

#[test]
fn an_unknown_block_is_refused() {
    for json in [
        r#"{"type":"hologram","text":"x"}"#,
        r#"{"text":"x"}"#,
        r#"{"type":"text"}"#,
    ] {
        assert!(serde_json::from_str::<ContentBlock>(json).is_err(), "{json}");
    }
}

#[test]
fn text_is_joined_as_it_is() {
    assert_eq!(text_of(&[]), "");
    assert_eq!(
        text_of(&[
            ContentBlock::text("a"),
            ContentBlock::text(""),
            ContentBlock::text("\nb")
        ]),
        "a\nb"
    );
}
