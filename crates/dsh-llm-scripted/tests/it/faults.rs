//! What is wrong with a script is told at once and all together.

use dsh_llm_scripted::{ScriptError, ScriptedAdapter};
use expect_test::expect;

fn faults(json: &str) -> Vec<String> {
    match ScriptedAdapter::from_json("test", json).unwrap_err() {
        ScriptError::Wrong { name, faults } => {
            assert_eq!(name, "test");
            faults.iter().map(ToString::to_string).collect()
        }
        error => vec![format!("another error: {error}")],
    }
}

#[test]
fn all_faults_are_told_with_their_places() {
    let script = r#"{
            "turn": [],
            "turns": [
                {"text": 5, "says": "x"},
                {"text": "x", "tool_calls": [
                    {"name": "a", "args": {}},
                    {"arguments": [1]},
                    "bash",
                    {"name": "b", "id": "call-5"},
                    {"name": "c"}
                ]},
                {"hang": "yes", "cut": false},
                {"error": {"code": 5, "retry": "soon"}},
                {"error": "down"},
                {"text": "x", "finish": "done", "expect": "y"},
                {"expect": ["y", null]},
                {},
                7
            ]
        }"#;
    expect![[r#"
            unknown key "turn" (known: turns)
            turns[0]: unknown key "says" (known: text, reasoning, tool_calls, finish, hang, cut, error, expect, wait_for_file)
            turns[0].text: must be a string, is 5
            turns[1].tool_calls[0]: unknown key "args" (known: name, arguments, id)
            turns[1].tool_calls[1].arguments: must be an object or a string, is [1]
            turns[1].tool_calls[1]: has no "name"
            turns[1].tool_calls[2]: must be an object, is "bash"
            turns[1].tool_calls: two calls have the id "call-5"
            turns[2]: has hang and cut, which exclude each other
            turns[2].hang: must be true, is "yes"
            turns[2].cut: must be true, is false
            turns[3].error.code: must be a string, is 5
            turns[3].error: has no "message"
            turns[3].error.retry: must be "later" or "never", is "soon"
            turns[4].error: must be an object, is "down"
            turns[5].expect: must be an array, is "y"
            turns[5].finish: must be "stop", "tool-calls" or "max-tokens", is "done"
            turns[6]: says nothing: give text, tool_calls, finish, hang, cut or error
            turns[6].expect[1]: must be a string, is null
            turns[7]: says nothing: give text, tool_calls, finish, hang, cut or error
            turns[8]: must be an object, is 7"#]].assert_eq(&faults(script).join("\n"));
}

#[test]
fn what_is_no_script_at_all_is_refused() {
    let cases = [
        ("", "no JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "must be an object, is []"),
        ("{}", "has no \"turns\""),
        (r#"{"turns": {}}"#, "turns: must be an array, is {}"),
        (
            r#"{"turns": []} x"#,
            "no JSON: trailing characters at line 1 column 15",
        ),
    ];
    for (json, expected) in cases {
        assert_eq!(faults(json), [expected]);
    }
}

#[test]
fn a_script_without_turns_is_one() {
    let model = ScriptedAdapter::from_json("test", r#"{"turns": []}"#).unwrap();
    assert_eq!(model.finish(), Ok(()));
}

#[test]
fn the_error_names_the_script_and_every_fault() {
    let error = ScriptedAdapter::from_json("test", r#"{"turns": [{}, {"x": 1}]}"#).unwrap_err();
    assert_eq!(error.to_string().matches("turns[").count(), 2, "{error}");
    assert!(
        error
            .to_string()
            .starts_with("script test is wrong: turns[0]: says nothing")
    );
}
