//! What JSON cannot hold.

use serde_json::Value;

use crate::{AppendError, EventData};

/// How deep a JSON value may be nested to be read back: parsers stop at 128, envelope included.
const MAX_DEPTH: usize = 100;

/// Refuses what would not be read back as it is.
pub(crate) fn lossless(data: &EventData) -> Result<(), AppendError> {
    let lost = |what| {
        let kind = data.kind();
        Err(AppendError::NotLossless { kind, what })
    };
    match data {
        EventData::RequestHeader { header, .. } => {
            if header
                .sampling
                .temperature
                .is_some_and(|value| !value.is_finite())
            {
                return lost("a temperature that is no number");
            }
            if header
                .tools
                .iter()
                .any(|tool| is_deeper(&tool.parameters, MAX_DEPTH))
            {
                return lost("a schema that is nested too deep");
            }
            Ok(())
        }
        EventData::ToolResult {
            value: Some(value), ..
        } if is_deeper(value, MAX_DEPTH) => lost("a value that is nested too deep"),
        EventData::TurnStart { .. }
        | EventData::TurnEnd { .. }
        | EventData::StepStart { .. }
        | EventData::StepEnd { .. }
        | EventData::ModelChoice { .. }
        | EventData::UserMessage(_)
        | EventData::AssistantMessage { .. }
        | EventData::ToolCall { .. }
        | EventData::ToolResult { .. } => Ok(()),
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else {
        return true;
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(fields) => fields.values().any(|field| is_deeper(field, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
