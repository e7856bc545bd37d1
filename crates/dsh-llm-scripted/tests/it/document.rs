//! What the guide to scripts shows.

use dsh_llm_scripted::ScriptedAdapter;

const GUIDE: &str = include_str!("../../../../docs/scripted-models.md");

#[test]
fn the_example_of_the_guide_is_a_script() {
    let (_, example) = GUIDE.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    let script = ScriptedAdapter::from_json("guide", example).unwrap();
    assert_eq!(script.unused(), 3);
}

#[test]
fn the_guide_names_every_key_of_a_turn() {
    let refused = ScriptedAdapter::from_json("keys", r#"{"turns": [{"text": "x", "no such key": 1}]}"#);
    let refused = refused.unwrap_err().to_string();
    let (_, known) = refused.split_once("(known: ").unwrap();
    let (known, _) = known.split_once(')').unwrap();
    for key in known.split(", ") {
        assert!(GUIDE.contains(&format!("| `{key}` |")), "{key} is missing");
    }
}
