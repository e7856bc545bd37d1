//! From TOML to a [`Config`], with every fault at once.
//!
//! Serde stops at the first fault, so each key is decoded alone: what fails is named and left out, and the rest is
//! decoded together, which can then fail no more.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::Config;
use crate::error::Fault;

/// Decodes the text of a configuration file.
///
/// # Errors
///
/// All faults: of the syntax, which hides the others, or of the keys and values.
pub(super) fn decode(text: &str) -> Result<Config, Vec<Fault>> {
    let root: Table = text.parse().map_err(|error: toml::de::Error| {
        vec![Fault::new(
            "",
            error.to_string().trim_end().replace('\n', "\n    "),
        )]
    })?;
    let mut faults = Vec::new();
    let mut config = Config::default();
    let mut scalars = Table::new();
    for (key, value) in root {
        match (key.as_str(), value) {
            ("tasks", Value::Table(table)) => config.tasks = each_key("tasks.", table, &mut faults),
            ("tool_tasks", Value::Table(table)) => {
                config.tool_tasks = each_key("tool_tasks.", table, &mut faults);
            }
            ("bash", Value::Table(table)) => config.bash = each_key("bash.", table, &mut faults),
            ("tool_bash", Value::Table(table)) => {
                config.tool_bash = each_key("tool_bash.", table, &mut faults)
            }
            ("tasks" | "tool_tasks" | "bash" | "tool_bash", other) => {
                let found = other.type_str();
                faults.push(Fault::new(
                    &key,
                    format!("must be a table ([{key}]), is a value of type {found}"),
                ));
            }
            (_, value) => {
                scalars.insert(key, value);
            }
        }
    }
    config.vocabulary = each_key::<Config>("", scalars, &mut faults).vocabulary;
    faults.extend(config.faults());
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(faults)
    }
}

/// Decodes what can be decoded of a table, and names every key that cannot.
fn each_key<T: DeserializeOwned + Default>(path: &str, table: Table, faults: &mut Vec<Fault>) -> T {
    let mut good = Table::new();
    for (key, value) in table {
        let alone = Table::from_iter([(key.clone(), value.clone())]);
        match alone.try_into::<T>() {
            Ok(_) => {
                good.insert(key, value);
            }
            Err(error) => faults.push(Fault::new(&format!("{path}{key}"), in_words(error.message()))),
        }
    }
    good.try_into().unwrap_or_else(|error: toml::de::Error| {
        faults.push(Fault::new(path, in_words(error.message())));
        T::default()
    })
}

/// Serde's text with the names of Rust's types in words.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("floating point", "number"),
        ("expected path string", "expected a path"),
    ];
    WORDS.iter().fold(message.trim().to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}
