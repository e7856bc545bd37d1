//! Which schemas a structured result can have.

use serde_json::{Map, Value};

/// A schema that cannot be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported output schema: {0}")]
pub struct SchemaError(String);

/// The types that a value is checked for.
const TYPES: [&str; 6] = ["object", "array", "string", "number", "integer", "boolean"];

/// What says something to a reader and asks nothing of a value.
const ANNOTATIONS: [&str; 7] = [
    "$comment",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "title",
];

/// Whether a result can be held to this schema: a JSON Schema of an object that asks for nothing but what the arguments of
/// a tool are checked for.
///
/// These are `type` (one), `properties`, `required` (of properties), `items` (one schema), `enum`, `minimum` and `maximum`.
/// `additionalProperties` may be `false` at the root, where what is not declared is left out, and `true` everywhere.
/// Whatever else could be violated unseen, which is worse than a schema that is refused.
///
/// # Errors
///
/// A [`SchemaError`] that says what it is about, and where it stands: `user.tags[]`.
pub fn check_output_schema(schema: &Value) -> Result<(), SchemaError> {
    if schema["type"] != "object" {
        return Err(SchemaError("its \"type\" must be \"object\"".to_owned()));
    }
    check(schema, "")
}

fn check(schema: &Value, path: &str) -> Result<(), SchemaError> {
    let Value::Object(schema) = schema else {
        return Err(unsupported(path, "must be a schema, which is an object"));
    };
    for (keyword, value) in schema {
        let fault = match keyword.as_str() {
            "type" => (!is_type(value)).then_some("must be the name of one type"),
            "properties" => {
                properties(value, path)?;
                None
            }
            "required" => (!is_declared(value, schema)).then_some("must list properties of the same schema"),
            "items" => {
                check(value, &format!("{path}[]"))?;
                None
            }
            "enum" => {
                let is_list = value.as_array().is_some_and(|values| !values.is_empty());
                (!is_list).then_some("must list values")
            }
            "minimum" | "maximum" => (!value.is_number()).then_some("must be a number"),
            "additionalProperties" => {
                let is_left_out = path.is_empty() && schema.contains_key("properties");
                let is_held = *value == true || (*value == false && is_left_out);
                (!is_held).then_some("cannot be checked here")
            }
            annotation if ANNOTATIONS.contains(&annotation) => None,
            _ => Some("cannot be checked"),
        };
        if let Some(fault) = fault {
            return Err(unsupported(path, &format!("\"{keyword}\" {fault}")));
        }
    }
    Ok(())
}

fn properties(value: &Value, path: &str) -> Result<(), SchemaError> {
    let Value::Object(properties) = value else {
        return Err(unsupported(path, "\"properties\" must be an object"));
    };
    for (name, property) in properties {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        check(property, &path)?;
    }
    Ok(())
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_declared(required: &Value, schema: &Map<String, Value>) -> bool {
    let is_property = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        schema
            .get("properties")
            .is_some_and(|all| all.get(name).is_some())
    };
    required
        .as_array()
        .is_some_and(|names| names.iter().all(is_property))
}

fn unsupported(path: &str, fault: &str) -> SchemaError {
    SchemaError(match path {
        "" => fault.to_owned(),
        path => format!("{path}: {fault}"),
    })
}
