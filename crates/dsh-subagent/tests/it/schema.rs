//! Schemas that a result can be held to.

use dsh_subagent::check_output_schema;
use serde_json::{Value, json};

fn refused(schema: &Value) -> String {
    let error = check_output_schema(schema).unwrap_err().to_string();
    let fault = error.strip_prefix("unsupported output schema: ");
    fault.unwrap_or("another text").to_owned()
}

#[test]
fn s89_what_arguments_are_checked_for_can_be_asked_of_a_result() {
    for schema in [
        json!({ "type": "object" }),
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "title": "Answer",
            "additionalProperties": false,
            "required": ["verdict", "score"],
            "properties": {
                "verdict": { "type": "string", "enum": ["yes", "no"], "description": "In short.", "examples": ["no"] },
                "score": { "type": "integer", "minimum": 0, "maximum": 10, "default": 5 },
                "tags": { "type": "array", "items": { "type": "string" } },
                "who": {
                    "type": "object",
                    "additionalProperties": true,
                    "required": ["name"],
                    "properties": { "name": { "type": "string" }, "anything": {} },
                },
                "ratio": { "type": "number" },
                "sure": { "type": "boolean", "deprecated": true, "$comment": "ask" },
            },
        }),
    ] {
        assert_eq!(check_output_schema(&schema), Ok(()), "{schema}");
    }
}

#[test]
fn s89_whatever_could_be_violated_unseen_is_refused_and_named() {
    for (schema, fault) in [
        (json!({ "type": "string" }), "its \"type\" must be \"object\""),
        (json!(true), "its \"type\" must be \"object\""),
        (
            json!({ "type": "object", "properties": [] }),
            "\"properties\" must be an object",
        ),
        (
            json!({ "type": "object", "required": ["a"] }),
            "\"required\" must list properties of the same schema",
        ),
        (
            json!({ "type": "object", "additionalProperties": false }),
            "\"additionalProperties\" cannot be checked here",
        ),
        (
            json!({ "type": "object", "anyOf": [] }),
            "\"anyOf\" cannot be checked",
        ),
        (
            json!({ "type": "object", "$ref": "#" }),
            "\"$ref\" cannot be checked",
        ),
    ] {
        assert_eq!(refused(&schema), fault, "{schema}");
    }
    for (property, fault) in [
        (json!(false), "a: must be a schema, which is an object"),
        (
            json!({ "type": ["string", "null"] }),
            "a: \"type\" must be the name of one type",
        ),
        (
            json!({ "type": "null" }),
            "a: \"type\" must be the name of one type",
        ),
        (
            json!({ "type": "string", "pattern": "^x" }),
            "a: \"pattern\" cannot be checked",
        ),
        (json!({ "const": 1 }), "a: \"const\" cannot be checked"),
        (json!({ "enum": [] }), "a: \"enum\" must list values"),
        (json!({ "minimum": "0" }), "a: \"minimum\" must be a number"),
        (
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            "a: \"additionalProperties\" cannot be checked here",
        ),
        (
            json!({ "type": "array", "items": { "properties": { "b": { "format": "date" } } } }),
            "a[].b: \"format\" cannot be checked",
        ),
        (
            json!({ "type": "array", "items": [{}] }),
            "a[]: must be a schema, which is an object",
        ),
    ] {
        let schema = json!({ "type": "object", "properties": { "a": property } });
        assert_eq!(refused(&schema), fault, "{schema}");
    }
}
