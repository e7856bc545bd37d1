//! Input schemas and the checks made from them.

use std::collections::BTreeMap;

use dsh_tools::{ToolError, decode, schema_of};
use expect_test::expect_file;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Everything {
    /// Its name.
    name: String,
    #[serde(default)]
    flag: Option<bool>,
    limit: Option<f64>,
    count: Option<u32>,
    color: Option<Color>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    servers: Vec<Server>,
    inner: Option<Server>,
    env: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Color {
    /// Warm.
    Red,
    /// Cold.
    Blue,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Server {
    host: String,
    port: Option<u16>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn violations(args: Value) -> String {
    decode::<Everything>(&schema_of::<Everything>(), &args)
        .expect_err("invalid")
        .to_string()
}

#[test]
fn a_schema_says_what_the_model_needs_and_nothing_else() {
    let schema = serde_json::to_string_pretty(&schema_of::<Everything>()).expect("serializes");
    expect_file!["./everything.json"].assert_eq(&schema);
    assert_eq!(
        schema_of::<Nothing>(),
        json!({ "type": "object", "properties": {} })
    );
}

#[test]
fn core41_arguments_that_fit_are_decoded_and_undeclared_keys_ignored() {
    let args = json!({ "name": "n", "flag": true, "limit": 2.5, "color": "blue", "more": [] });
    let decoded: Everything = decode(&schema_of::<Everything>(), &args).expect("valid");
    assert_eq!(decoded.name, "n");
    assert_eq!(decoded.flag, Some(true));
    assert_eq!(decoded.color, Some(Color::Blue));
    decode::<Nothing>(&schema_of::<Nothing>(), &json!({ "x": 1 }))
        .expect("ignored, although the type is strict");
}

#[test]
fn core41_the_top_level_must_be_an_object() {
    for args in [json!("text"), json!([]), json!(1), Value::Null] {
        assert_eq!(
            violations(args),
            r#"invalid arguments: "arguments" must be an object"#
        );
    }
}

#[test]
fn core41_every_violation_is_listed_in_declaration_order() {
    assert_eq!(
        violations(json!({})),
        r#"invalid arguments: missing required property "name""#
    );
    assert_eq!(
        violations(json!({
            "env": 1,
            "inner": { "port": "x" },
            "servers": [{ "host": "a" }, { "host": 1 }, 7],
            "tags": ["a", 1],
            "color": "green",
            "count": 2.5,
            "limit": "soon",
            "flag": "yes",
            "name": 42,
        })),
        concat!(
            r#"invalid arguments: "name" must be a string; "flag" must be a boolean; "limit" must be a number; "#,
            r#""count" must be an integer; "color" must be one of ["red","blue"]; "tags[1]" must be a string; "#,
            r#""servers[1].host" must be a string; "servers[2]" must be an object; "#,
            r#"missing required property "inner.host"; "inner.port" must be an integer; "env" must be an object"#,
        )
    );
    assert_eq!(
        violations(json!({ "name": "n", "tags": {} })),
        r#"invalid arguments: "tags" must be an array"#
    );
    assert_eq!(
        violations(json!({ "name": "n", "flag": null })),
        r#"invalid arguments: "flag" must be a boolean"#
    );
}

#[test]
fn a_number_outside_its_type_is_named() {
    assert_eq!(
        violations(json!({ "name": "n", "count": -1, "inner": { "host": "h", "port": 65536 } })),
        r#"invalid arguments: "count" must be at least 0; "inner.port" must be at most 65535"#
    );
}

#[test]
fn what_only_the_type_refuses_is_a_violation_too() {
    let text = violations(json!({ "name": "n", "env": { "A": 1 } }));
    assert_eq!(
        text,
        "invalid arguments: invalid type: integer `1`, expected a string"
    );
}

#[test]
fn a_violation_is_a_named_tool_error() {
    let error = decode::<Everything>(&schema_of::<Everything>(), &json!({})).expect_err("invalid");
    let error = ToolError::from(error);
    let info = error.info().expect("a named error");
    assert_eq!((info.name, info.code), ("ToolArgsError", "INVALID_ARGS"));
}

/// Anything that can be JSON, not too large.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("name|flag|limit|tags|servers|host|[a-z]{1,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn core41_whatever_a_model_sends_is_decoded_or_refused_with_its_violations(args in anything()) {
        let refused = decode::<Everything>(&schema_of::<Everything>(), &args).err();
        if let Some(refused) = refused {
            prop_assert!(refused.to_string().starts_with("invalid arguments: "), "{}", refused);
        }
    }

    #[test]
    fn core41_arguments_that_fit_pass_and_fail_without_what_is_required(
        name in ".{0,8}",
        flag in any::<Option<bool>>(),
        tags in prop::collection::vec(".{0,4}", 0..3),
        undeclared in anything(),
    ) {
        let mut args = json!({"name": name, "flag": flag, "tags": tags, "undeclared": undeclared});
        if flag.is_none() {
            args.as_object_mut().and_then(|fields| fields.remove("flag"));
        }
        let decoded = decode::<Everything>(&schema_of::<Everything>(), &args).expect("it fits");
        prop_assert_eq!((decoded.name, decoded.flag, decoded.tags), (name, flag, tags));
        args.as_object_mut().and_then(|fields| fields.remove("name"));
        let expected = "invalid arguments: missing required property \"name\"";
        prop_assert_eq!(violations(args), expected);
    }
}
