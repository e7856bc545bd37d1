//! The limit of depth: a number, or the provider's own matter.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{DepthError, MAX_DEPTH};

const PROVIDER_MANAGED: &str = "provider-managed";

/// How many agents may stand above a child. The tool stays where the limit is reached, and its calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxDepth {
    /// So many, the child itself not counted; 0 forbids delegation.
    Limit(u64),
    /// The provider has its own measure, `"provider-managed"`: none is asked of it.
    ProviderManaged,
}

impl MaxDepth {
    /// The limit to ask for.
    pub(crate) fn limit(self) -> Option<u64> {
        match self {
            Self::Limit(max) => Some(max),
            Self::ProviderManaged => None,
        }
    }
}

impl Default for MaxDepth {
    fn default() -> Self {
        Self::Limit(3)
    }
}

impl Serialize for MaxDepth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limit(max) => serializer.serialize_u64(*max),
            Self::ProviderManaged => serializer.serialize_str(PROVIDER_MANAGED),
        }
    }
}

impl<'de> Deserialize<'de> for MaxDepth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Whatever a configuration may hold gets the one answer: what no JSON has, such as NaN, is null here.
        match Value::deserialize(deserializer)? {
            Value::String(text) if text == PROVIDER_MANAGED => Ok(Self::ProviderManaged),
            Value::Number(number) => number
                .as_u64()
                .filter(|max| *max <= MAX_DEPTH)
                .map(Self::Limit)
                .ok_or_else(malformed),
            _ => Err(malformed()),
        }
    }
}

fn malformed<E: Error>() -> E {
    E::custom(format_args!("{}, or {PROVIDER_MANAGED:?}", DepthError::Malformed))
}

impl JsonSchema for MaxDepth {
    fn schema_name() -> Cow<'static, str> {
        "MaxDepth".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 0, "maximum": MAX_DEPTH },
                { "const": PROVIDER_MANAGED },
            ]
        })
    }
}
