//! Arguments that a model wrote, as a person should see them before saying yes.

use dsh_output::visible;
use serde_json::Value;

/// The value with every text in it made visible.
pub(crate) fn visible_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(visible(text).into_owned()),
        Value::Array(items) => items.iter().map(visible_value).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (visible(key).into_owned(), visible_value(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
