//! The environment of a product.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a deployment configures of one variable of a product: its value, or that there is none.
///
/// A configuration says the second one as `false`, for TOML has no other word for nothing.
///
/// ```
/// use dsh_subagent_process::Variable;
///
/// assert_eq!(serde_json::from_str::<Variable>(r#""red""#)?, "red".into());
/// assert_eq!(serde_json::from_str::<Variable>("false")?, Variable::Removed);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variable {
    /// It has this value, whatever it had before.
    Value(String),
    /// The product does not get it, whoever set it.
    Removed,
}

/// What a deployment configures, by name, over what is left of the program's own environment.
pub fn overlay(
    ambient: &[(OsString, OsString)],
    configured: &BTreeMap<String, Variable>,
) -> Vec<(OsString, OsString)> {
    let kept = ambient.iter().filter(|(name, _)| {
        let name = name.to_str();
        name.is_none_or(|name| !configured.contains_key(name))
    });
    let set = configured.iter().filter_map(|(name, variable)| match variable {
        Variable::Value(value) => Some((name.into(), value.into())),
        Variable::Removed => None,
    });
    kept.cloned().chain(set).collect()
}

impl From<String> for Variable {
    fn from(value: String) -> Self {
        Self::Value(value)
    }
}

impl From<&str> for Variable {
    fn from(value: &str) -> Self {
        Self::Value(value.to_owned())
    }
}

impl Serialize for Variable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => serializer.serialize_str(value),
            Self::Removed => serializer.serialize_bool(false),
        }
    }
}

impl<'de> Deserialize<'de> for Variable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Variable {
    fn schema_name() -> Cow<'static, str> {
        "Variable".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The value of a variable; false removes it.",
            "anyOf": [{ "type": "string" }, { "const": false }]
        })
    }
}

/// Reads what a configuration says of a variable.
struct Written;

impl Visitor<'_> for Written {
    type Value = Variable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or false to remove the variable")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Variable, E> {
        Ok(value.into())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Variable, E> {
        if value {
            Err(E::invalid_value(Unexpected::Bool(true), &self))
        } else {
            Ok(Variable::Removed)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_configured_variable_wins_and_a_removed_one_is_gone() {
        let ambient = [("A".into(), "1".into()), ("B".into(), "2".into())];
        let configured = [
            ("A", "3".into()),
            ("B", Variable::Removed),
            ("C", "4".into()),
            ("D", Variable::Removed),
        ];
        let configured = configured.map(|(name, variable)| (name.to_owned(), variable));
        assert_eq!(
            overlay(&ambient, &configured.into()),
            [("A".into(), "3".into()), ("C".into(), "4".into())]
        );
    }

    #[test]
    fn a_variable_is_a_string_or_false_and_nothing_else() {
        let both = json!({"A": "", "B": false});
        let read: BTreeMap<String, Variable> = serde_json::from_value(both.clone()).expect("an environment");
        assert_eq!((&read["A"], &read["B"]), (&"".into(), &Variable::Removed));
        assert_eq!(serde_json::to_value(&read).expect("JSON"), both);
        for (wrong, told) in [
            (json!(true), "invalid value: boolean `true`"),
            (json!(1), "invalid type: integer `1`"),
            (Value::Null, "invalid type: null"),
            (json!(["x"]), "invalid type: sequence"),
        ] {
            let error = serde_json::from_value::<Variable>(wrong).expect_err("neither");
            assert_eq!(
                error.to_string(),
                format!("{told}, expected a string, or false to remove the variable")
            );
        }
    }

    #[test]
    fn its_schema_has_both() {
        let schema = schemars::schema_for!(Variable);
        assert_eq!(
            schema.get("anyOf"),
            Some(&json!([{ "type": "string" }, { "const": false }]))
        );
    }
}
