//! The arguments of the `bash` tool.

use dsh_tools::{ToolError, decode, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

const BACKGROUND: &str = "run_in_background";

/// What a model may say. Anything else it says is ignored, in particular an environment or standard input.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(crate) struct BashArgs {
    /// Shell text.
    pub(crate) command: String,
    /// What it does, in 5 to 10 words for the user, e.g. "Run the unit tests", "List open ports".
    pub(crate) description: String,
    /// Milliseconds until the command and all it started are ended; background commands have none unless set.
    #[serde(rename = "timeoutMs")]
    pub(crate) timeout_ms: Option<f64>,
    /// Directory to run in; relative paths start at the session's.
    pub(crate) workdir: Option<String>,
    /// Return an id at once instead of waiting.
    pub(crate) run_in_background: Option<bool>,
}

impl BashArgs {
    /// Decodes and checks a call's arguments.
    pub(crate) fn parse(args: &Value) -> Result<Self, ToolError> {
        let parsed: Self = decode(&schema_of::<Self>(), args)?;
        for (name, text) in [("command", &parsed.command), ("description", &parsed.description)] {
            if text.trim().is_empty() {
                return Err(ToolError::new(format!(
                    "invalid {name}: expected a non-empty string"
                )));
            }
        }
        if parsed.timeout_ms.is_some_and(|ms| !(ms.is_finite() && ms > 0.0)) {
            let given = &args["timeoutMs"];
            return Err(ToolError::new(format!(
                "invalid timeoutMs: expected a positive number, got {given}"
            )));
        }
        Ok(parsed)
    }

    pub(crate) fn in_background(&self) -> bool {
        self.run_in_background == Some(true)
    }
}

/// The schema that the model sees: without background where that is switched off.
pub(crate) fn schema(background: bool) -> Value {
    let mut schema = schema_of::<BashArgs>();
    if !background && let Some(properties) = schema["properties"].as_object_mut() {
        properties.shift_remove(BACKGROUND);
    }
    schema
}
