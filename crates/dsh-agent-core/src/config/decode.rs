//! From TOML to a [`Config`], with every fault at once.
//!
//! Serde stops at the first fault, so each key is decoded alone: what fails is named and left out, and the rest is
//! decoded together, which can then fail no more.

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
    let good = what_decodes(root, &mut faults);
    let config = good.try_into().unwrap_or_else(|error: toml::de::Error| {
        faults.push(Fault::new("", in_words(error.message())));
        Config::default()
    });
    faults.extend(config.faults());
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(faults)
    }
}

/// The part of a file that decodes; every key that does not is named.
fn what_decodes(root: Table, faults: &mut Vec<Fault>) -> Table {
    let mut good = Table::new();
    for (key, value) in root {
        let names_a_table = alone(&key, Table::new().into()).is_ok();
        match value {
            Value::Table(table) if names_a_table => {
                let mut kept = Table::new();
                for (inner, value) in table {
                    let only = Table::from_iter([(inner.clone(), value.clone())]);
                    match alone(&key, only.into()) {
                        Ok(()) => _ = kept.insert(inner, value),
                        Err(problem) => faults.push(Fault::new(&format!("{key}.{inner}"), problem)),
                    }
                }
                good.insert(key, kept.into());
            }
            other if names_a_table => {
                let found = other.type_str();
                let problem = format!("must be a table ([{key}]), is a value of type {found}");
                faults.push(Fault::new(&key, problem));
            }
            value => match alone(&key, value.clone()) {
                Ok(()) => _ = good.insert(key, value),
                Err(problem) => faults.push(Fault::new(&key, problem)),
            },
        }
    }
    good
}

/// Whether a configuration may have `key` with this value, and nothing else; if not, why.
fn alone(key: &str, value: Value) -> Result<(), String> {
    Table::from_iter([(key.to_owned(), value)])
        .try_into::<Config>()
        .map(drop)
        .map_err(|error| in_words(error.message()))
}

/// Serde's text with the names of Rust's types in words.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("expected a nonzero u64", "expected a whole number above 0"),
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
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
