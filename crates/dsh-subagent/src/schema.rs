//! Which schemas a structured result can have.

use serde_json::Value;

/// A schema that cannot be held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported output schema: {0}")]
pub struct SchemaError(String);

/// Whether a result can be held to this schema: a JSON Schema of an object.
///
/// # Errors
///
/// A [`SchemaError`] that says what it is about.
pub fn check_output_schema(schema: &Value) -> Result<(), SchemaError> {
    if schema["type"] != "object" {
        return Err(SchemaError("its \"type\" must be \"object\"".to_owned()));
    }
    Ok(())
}
