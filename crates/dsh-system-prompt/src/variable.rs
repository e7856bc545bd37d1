//! Variables, and strict references to them.

use std::collections::HashMap;

use crate::{AssembleError, Section};

/// A name that sections can refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// What stands between the braces.
    pub name: String,
    /// What a reference becomes. Referring to a variable without a value is an error.
    pub value: Option<String>,
}

impl Variable {
    /// A variable with a value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: Some(value.into()),
        }
    }
}

/// Whether a reference can have this name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The text of a section with its references replaced.
pub(crate) fn substitute(
    section: &Section,
    values: &HashMap<&str, Option<&str>>,
) -> Result<String, AssembleError> {
    let mut rest = section.text.as_str();
    let mut text = String::with_capacity(rest.len());
    while let Some((prose, opened)) = rest.split_once("{{")
        && let Some((name, after)) = opened.split_once("}}")
    {
        text.push_str(prose);
        text.push_str(value_of(name, section, values)?);
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn value_of<'a>(
    name: &str,
    section: &Section,
    values: &HashMap<&str, Option<&'a str>>,
) -> Result<&'a str, AssembleError> {
    let (section, variable) = (section.name.clone(), name.to_owned());
    if !is_name(name) {
        return Err(AssembleError::Malformed {
            section,
            text: variable,
        });
    }
    match values.get(name) {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(AssembleError::NoValue { section, variable }),
        None => Err(AssembleError::UnknownVariable { section, variable }),
    }
}
