//! Arguments of a call: from what the model wrote to a typed value, or to everything that is wrong with it.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::ArgsError;

/// Checks `args` against `schema` and turns them into `T`.
///
/// Total: reports all violations, in the order in which the schema declares its properties. `T` sees no argument that
/// the schema does not declare, and defaults are not applied. Of the schema, `type`, `properties`, `required`, `items`,
/// `enum`, `minimum` and `maximum` are looked at: what [`schema_of`](crate::schema_of) makes of ordinary argument
/// structs.
///
/// # Errors
/// An [`ArgsError`], which reads like
/// `invalid arguments: missing required property "task_id"; "wait" must be a boolean`.
pub fn decode<T: DeserializeOwned>(schema: &Value, args: &Value) -> Result<T, ArgsError> {
    let Value::Object(args) = args else {
        return Err(ArgsError::new(vec![
            r#""arguments" must be an object"#.to_owned(),
        ]));
    };
    let mut violations = Vec::new();
    check_properties(schema, args, "", &mut violations);
    if violations.is_empty() {
        T::deserialize(Value::Object(declared(schema, args)))
            .map_err(|error| ArgsError::new(vec![error.to_string()]))
    } else {
        Err(ArgsError::new(violations))
    }
}

/// What a model or client sent as arguments, as JSON.
///
/// Some send the text of the JSON: an empty one means no arguments, and one that cannot be parsed stays a
/// string, which [`decode`] then refuses.
pub fn parse_arguments(args: Value) -> Value {
    match args {
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        other => other,
    }
}

fn declared(schema: &Value, args: &Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_declared = |name: &str| properties.is_none_or(|properties| properties.contains_key(name));
    args.iter()
        .filter(|(name, _)| is_declared(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn check(schema: &Value, value: &Value, path: &str, violations: &mut Vec<String>) {
    if let Some(expected) = schema.get("type").and_then(Value::as_str)
        && let Some(expectation) = mismatch(expected, value)
    {
        violations.push(format!("{} must be {expectation}", quoted(path)));
        return;
    }
    if let Some(bound) = out_of_range(schema, value) {
        violations.push(format!("{} must be {bound}", quoted(path)));
        return;
    }
    if let Some(allowed) = schema.get("enum")
        && !allowed.as_array().is_some_and(|allowed| allowed.contains(value))
    {
        violations.push(format!("{} must be one of {allowed}", quoted(path)));
        return;
    }
    match value {
        Value::Object(object) => check_properties(schema, object, path, violations),
        Value::Array(items) => {
            if let Some(item_schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    check(item_schema, item, &format!("{path}[{index}]"), violations);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn check_properties(schema: &Value, object: &Map<String, Value>, path: &str, violations: &mut Vec<String>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    for (name, property) in properties {
        let path = if path.is_empty() {
            name.clone()
        } else {
            format!("{path}.{name}")
        };
        match object.get(name) {
            Some(value) => check(property, value, &path, violations),
            None if required.is_some_and(|required| required.iter().any(|key| key == name)) => {
                violations.push(format!("missing required property {}", quoted(&path)));
            }
            None => {}
        }
    }
}

/// What a value of JSON type `expected` is called, if `value` is not one.
fn mismatch(expected: &str, value: &Value) -> Option<&'static str> {
    let (fits, expectation) = match expected {
        "string" => (value.is_string(), "a string"),
        "number" => (value.is_number(), "a number"),
        "integer" => (value.is_i64() || value.is_u64(), "an integer"),
        "boolean" => (value.is_boolean(), "a boolean"),
        "object" => (value.is_object(), "an object"),
        "array" => (value.is_array(), "an array"),
        _ => (true, ""),
    };
    (!fits).then_some(expectation)
}

/// The bound that a number breaks; schemars writes one where the Rust type has one.
fn out_of_range(schema: &Value, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    let bound = |key| schema.get(key).and_then(|bound| Some((bound, bound.as_f64()?)));
    match (bound("minimum"), bound("maximum")) {
        (Some((text, minimum)), _) if number < minimum => Some(format!("at least {text}")),
        (_, Some((text, maximum))) if number > maximum => Some(format!("at most {text}")),
        _ => None,
    }
}

fn quoted(path: &str) -> String {
    format!("\"{path}\"")
}
