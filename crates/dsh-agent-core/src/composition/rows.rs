//! The rows of a profile or a preset: what is there, under which id, and whether it is switched on.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use serde::Deserialize;
use toml::{Table, Value};

use crate::config::decode;
use crate::error::Fault;

/// One row of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    /// Names it in its file.
    pub(crate) id: String,
    /// What it is a row of.
    pub(crate) name: String,
    pub(crate) disabled: bool,
    /// What that is configured with.
    pub(crate) config: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: String,
    name: String,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    config: Table,
}

impl Written {
    /// What can be looked at further of a row with faults. What only counts for rows that are on is not, unless it is clear that
    /// it is one; a row without a name is nothing.
    fn of_what_is_right(row: &Table, index: usize) -> Option<Self> {
        let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        let disabled = row.get("disabled").map_or(Some(false), Value::as_bool);
        Some(Self {
            id: text("id").unwrap_or_else(|| format!("{index}")),
            name: text("name")?,
            disabled: disabled.unwrap_or(true),
            config: row
                .get("config")
                .and_then(Value::as_table)
                .cloned()
                .unwrap_or_default(),
        })
    }
}

impl Row {
    /// Where its configuration stands, for people.
    pub(crate) fn config_key(&self, list: &str) -> String {
        format!("{list}.{}.config", self.id)
    }
}

/// Reads the rows of `list`. What is no row is named and left out.
pub(crate) fn rows(list: &str, value: Option<Value>, faults: &mut Vec<Fault>) -> Vec<Row> {
    let values = match value {
        None => return Vec::new(),
        Some(Value::Array(values)) => values,
        Some(other) => {
            let problem = format!(
                "must be a list of rows ([[{list}]]), is a value of type {}",
                other.type_str()
            );
            faults.push(Fault::new(list, problem));
            return Vec::new();
        }
    };
    let mut rows: Vec<Row> = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let id = value.get("id").and_then(Value::as_str);
        let place = id.map_or_else(|| format!("{list}[{index}]"), |id| format!("{list}.{id}"));
        let written = match value {
            Value::Table(table) => {
                let rest = Written::of_what_is_right(&table, index);
                decode::table::<Written>(&place, table, faults).or(rest)
            }
            other => {
                faults.push(Fault::new(
                    &place,
                    format!("must be a table, is a value of type {}", other.type_str()),
                ));
                None
            }
        };
        let Some(Written {
            id,
            name,
            disabled,
            config,
        }) = written
        else {
            continue;
        };
        if let Err(problem) = check_id(&id) {
            faults.push(Fault::new(&format!("{place}.id"), problem));
        }
        if rows.iter().any(|other| other.id == id) {
            faults.push(Fault::new(
                &format!("{place}.id"),
                "stands twice: ids are unique in a file".to_owned(),
            ));
        }
        rows.push(Row {
            id,
            name,
            disabled,
            config,
        });
    }
    rows
}

/// The most bytes of a profile or a preset.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Reads a file that a person wrote. Whatever else has its name (a pipe, a device) is none, and nobody waits for it.
pub(crate) fn read_file(path: &Path) -> io::Result<String> {
    // Opening a pipe waits for somebody who writes.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

/// Ids are file names and keys: lowercase letters, digits and hyphens, and no hyphen in front.
pub(crate) fn check_id(id: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.is_empty() || id.starts_with('-') || !id.chars().all(good) {
        return Err(format!(
            "\"{id}\" is no id: lowercase letters, digits and hyphens, beginning with a letter or digit"
        ));
    }
    Ok(())
}
