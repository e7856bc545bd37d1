//! Input schemas: what schemars derives, made small enough to be paid for on every model request.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The input schema of the argument type `T`.
///
/// Says what a model needs and nothing else: no `$schema`, titles, number formats, null types, defaults of
/// `null` or `additionalProperties`; subschemas inline; an enum of unit variants is a plain `enum`; `required`
/// only where it lists something. Properties keep the order of the fields.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.shift_remove("description");
        root.entry("properties")
            .or_insert_with(|| Value::Object(Map::new()));
    }
    shrink(&mut schema);
    schema
}

fn shrink(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for noise in ["title", "format", "additionalProperties"] {
        object.shift_remove(noise);
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.shift_remove("default");
    }
    drop_null_type(object);
    inline_only_alternative(object);
    collect_constants(object);
    if object
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        object.shift_remove("required");
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(shrink);
    }
    if let Some(items) = object.get_mut("items") {
        shrink(items);
    }
}

/// `"type": ["string", "null"]` → `"type": "string"`; an optional argument is left out, not null.
fn drop_null_type(object: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = object.get_mut("type") else {
        return;
    };
    types.retain(|kind| kind != "null");
    if let [only] = types.as_mut_slice() {
        let only = only.take();
        object.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

/// `"anyOf": [X, {"type": "null"}]` → X.
fn inline_only_alternative(object: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = object.get_mut("anyOf") else {
        return;
    };
    alternatives.retain(|alternative| alternative.get("type").is_none_or(|kind| kind != "null"));
    let [Value::Object(only)] = alternatives.as_mut_slice() else {
        return;
    };
    let only = std::mem::take(only);
    object.shift_remove("anyOf");
    for (key, value) in only {
        object.entry(key).or_insert(value);
    }
}

/// `"oneOf": [{"const": a}, {"const": b}]` → `"enum": [a, b]`, the form that unit variants with doc comments
/// lose.
fn collect_constants(object: &mut Map<String, Value>) {
    let Some(Value::Array(alternatives)) = object.get("oneOf") else {
        return;
    };
    let constants: Option<Vec<Value>> = alternatives
        .iter()
        .map(|alternative| alternative.get("const").cloned())
        .collect();
    if let Some(constants) = constants {
        object.shift_remove("oneOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), Value::Array(constants));
    }
}
