//! The arguments of a delegation.

use dsh_tools::{ToolError, decode, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What a model may say. Which provider runs the child is none of it: a tool has one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
pub(crate) struct DelegationArgs {
    /// What is delegated, in 3 to 5 words for the user, e.g. "Find callers of parse".
    pub(crate) description: String,
    // Described by the wording: it depends on the provider.
    pub(crate) prompt: String,
    // Described by the wording: it names the control tools.
    pub(crate) run_in_background: Option<bool>,
}

impl DelegationArgs {
    /// Decodes and checks a call's arguments.
    pub(crate) fn parse(args: &Value) -> Result<Self, ToolError> {
        let parsed: Self = decode(&schema_of::<Self>(), args)?;
        for (name, text) in [("description", &parsed.description), ("prompt", &parsed.prompt)] {
            if text.trim().is_empty() {
                return Err(ToolError::new(format!(
                    "invalid {name}: expected a non-empty string"
                )));
            }
        }
        Ok(parsed)
    }

    pub(crate) fn in_background(&self) -> bool {
        self.run_in_background == Some(true)
    }
}

/// The schema that the model sees; without a text about the background there is none.
pub(crate) fn schema(prompt: &str, background: Option<&str>) -> Value {
    let mut schema = schema_of::<DelegationArgs>();
    let properties = &mut schema["properties"];
    properties["prompt"]["description"] = prompt.into();
    match background {
        Some(text) => properties["run_in_background"]["description"] = text.into(),
        None => {
            if let Some(properties) = properties.as_object_mut() {
                properties.shift_remove("run_in_background");
            }
        }
    }
    schema
}
