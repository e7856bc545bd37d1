//! From TOML to a [`Config`] or the parts of a composition, with every fault at once.
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
    let root = syntax(text)?;
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

/// Reads TOML.
///
/// # Errors
///
/// The one fault that hides all others.
pub(crate) fn syntax(text: &str) -> Result<Table, Vec<Fault>> {
    text.parse().map_err(|error: toml::de::Error| {
        vec![Fault::new(
            "",
            error.to_string().trim_end().replace('\n', "\n    "),
        )]
    })
}

/// Decodes one table, which stands at `place`; nothing if something is wrong with it.
pub(crate) fn table<T: DeserializeOwned>(place: &str, table: Table, faults: &mut Vec<Fault>) -> Option<T> {
    let key_at = |key: &str| match place {
        "" => key.to_owned(),
        place => format!("{place}.{key}"),
    };
    let mut bad = Vec::new();
    for (key, value) in &table {
        match alone::<T>(key, value.clone()) {
            // Another key is.
            Err(problem) if problem.starts_with(MISSING) => {}
            Ok(()) => {}
            Err(problem) => {
                let parts = parts::<T>(key, value);
                if parts.is_empty() {
                    faults.push(Fault::new(&key_at(key), problem));
                }
                let parts = parts.into_iter();
                faults.extend(parts.map(|(part, problem)| Fault::new(&key_at(&part), problem)));
                bad.push(key.clone());
            }
        }
    }
    // What is bad was told: what is missing beside it would be hidden by it.
    let rest = table.into_iter().filter(|(key, _)| !bad.contains(key));
    match Table::from_iter(rest).try_into() {
        Ok(decoded) => bad.is_empty().then_some(decoded),
        Err(error) => {
            let problem = error.message().trim();
            if !bad.iter().any(|key| problem == format!("{MISSING} `{key}`")) {
                faults.push(Fault::new(
                    place,
                    in_words(problem).replace(MISSING, "there is no key"),
                ));
            }
            None
        }
    }
}

/// How serde begins to say that a key is not there.
const MISSING: &str = "missing field";

/// The part of a file that decodes; every key that does not is named.
fn what_decodes(root: Table, faults: &mut Vec<Fault>) -> Table {
    let mut good = Table::new();
    for (key, value) in root {
        let names_a_table = alone::<Config>(&key, Table::new().into()).is_ok();
        match value {
            Value::Table(table) if names_a_table => {
                let mut kept = Table::new();
                for (inner, value) in table {
                    let only = Table::from_iter([(inner.clone(), value.clone())]);
                    match alone::<Config>(&key, only.into()) {
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
            value => match alone::<Config>(&key, value.clone()) {
                Ok(()) => _ = good.insert(key, value),
                Err(problem) => faults.push(Fault::new(&key, problem)),
            },
        }
    }
    good
}

/// What is wrong with the parts of a table, if each can be looked at alone.
fn parts<T: DeserializeOwned>(key: &str, value: &Value) -> Vec<(String, String)> {
    let parts = value.as_table().into_iter().flatten();
    let fault = |(part, value): (&String, &Value)| {
        let only = Table::from_iter([(part.clone(), value.clone())]);
        let problem = alone::<T>(key, only.into()).err()?;
        (!problem.starts_with(MISSING)).then(|| (format!("{key}.{part}"), problem))
    };
    parts.filter_map(fault).collect()
}

/// Whether a table may have `key` with this value, and nothing else; if not, why.
fn alone<T: DeserializeOwned>(key: &str, value: Value) -> Result<(), String> {
    Table::from_iter([(key.to_owned(), value)])
        .try_into::<T>()
        .map(drop)
        .map_err(|error| in_words(error.message()))
}

/// Serde's text with the names of Rust's types in words.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 11] = [
        ("expected a nonzero u64", "expected a whole number above 0"),
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown value"),
        ("there are no fields", "there is nothing to configure"),
        ("floating point", "number"),
        ("expected path string", "expected a path"),
    ];
    WORDS.iter().fold(message.trim().to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}
