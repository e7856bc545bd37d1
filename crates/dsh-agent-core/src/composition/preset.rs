//! Presets: what one agent sees.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dsh_tasks::Vocabulary;
use dsh_tool_subagent::ToolSubagentConfig;
use serde::Deserialize;
use toml::{Table, Value};

use super::rows::{Row, check_id, read_file, rows};
use crate::config::{BASH, decode};
use crate::error::{ConfigError, Fault};

/// The presets that every installation has, in the order in which they are offered.
const SHIPPED: [(&str, &str); 3] = [
    ("standard", include_str!("../../presets/standard.toml")),
    ("code", include_str!("../../presets/code.toml")),
    ("minimal", include_str!("../../presets/minimal.toml")),
];

/// The list of rows in a preset.
pub(crate) const TOOLS: &str = "tools";

/// The presets that can be chosen: those that are shipped, and those in a directory. They are read when they are used, so a
/// change counts for what is composed after it.
#[derive(Debug, Clone, Default)]
pub struct Presets {
    directory: Option<PathBuf>,
}

/// What one agent sees.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its id.
    pub id: String,
    /// Its name for people, if it has one of its own.
    pub name: Option<String>,
    /// Where it stands among others, in ascending order.
    pub order: Option<i64>,
    /// What it is for.
    pub description: String,
    /// Takes the place of the deployment's persona.
    pub(crate) persona: Option<String>,
    pub(crate) rows: Vec<ToolRow>,
}

/// A row of a preset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolRow {
    pub(crate) id: String,
    pub(crate) disabled: bool,
    pub(crate) tool: ToolKind,
}

/// What a row of a preset gives an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolKind {
    /// Commands.
    Bash,
    /// One way to delegate.
    Subagent(Box<ToolSubagentConfig>),
}

/// Why a preset is not there, or could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// There is none of this id.
    #[error("preset \"{id}\" not found (available: {available})")]
    NotFound {
        /// The id.
        id: String,
        /// Those that are there.
        available: String,
    },
    /// This can be nobody's id.
    #[error("preset id {0}")]
    BadId(String),
    /// What is in its file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file has the id of one that is shipped.
    #[error("preset \"{id}\" is there twice: it is shipped, and {} is another one: give that file another name", .file.display())]
    Twice {
        /// The id.
        id: String,
        /// The file.
        file: PathBuf,
    },
    /// There is one of this id already.
    #[error("preset \"{0}\" exists already: choose another id")]
    Exists(String),
    /// There is no directory for presets.
    #[error("there is no place for presets: set DSH_HOME")]
    NoHome,
    /// It could not be written.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Head {
    name: Option<String>,
    description: String,
    order: Option<i64>,
    persona: Option<String>,
}

impl Presets {
    /// The one that is used unless another one is chosen.
    pub const DEFAULT: &str = SHIPPED[0].0;

    /// Those that are shipped, and the files `<id>.toml` of `directory`.
    pub fn in_directory(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// The ids of all of them: first the shipped ones, then the others by name.
    pub fn ids(&self) -> Vec<String> {
        let mut own: Vec<String> = Vec::new();
        // A directory that is not there has no presets, and one that cannot be read says so when one is used.
        let entries = self
            .directory
            .iter()
            .filter_map(|directory| fs::read_dir(directory).ok());
        for entry in entries.flatten().flatten() {
            let path = entry.path();
            let id = path.file_stem().and_then(|stem| stem.to_str());
            if path.extension().is_some_and(|extension| extension == "toml")
                && let Some(id) = id.filter(|id| check_id(id).is_ok() && shipped(id).is_none())
            {
                own.push(id.to_owned());
            }
        }
        own.sort();
        let shipped = SHIPPED.iter().map(|(id, _)| (*id).to_owned());
        shipped.chain(own).collect()
    }

    /// Reads a preset as it is now.
    ///
    /// # Errors
    ///
    /// A [`PresetError`]: there is none, there are two, or everything that is wrong in it.
    pub fn load(&self, id: &str) -> Result<Preset, PresetError> {
        self.load_with(id, |_, _| Vec::new())
    }

    /// As [`load`](Self::load), with the faults that `more` finds in what could be read of it. It is told the names of all its
    /// tools, those of rows that could not be read, too.
    pub(crate) fn load_with(
        &self,
        id: &str,
        more: impl FnOnce(&Preset, &[String]) -> Vec<Fault>,
    ) -> Result<Preset, PresetError> {
        let (origin, text) = self.text(id)?;
        let parsed = parse(id, &text).and_then(|mut read| {
            read.faults.extend(more(&read.preset, &read.tools));
            match read.faults.is_empty() {
                true => Ok(read.preset),
                false => Err(read.faults),
            }
        });
        parsed.map_err(|faults| ConfigError::Faults { origin, faults }.into())
    }

    /// The tools that delegate in the shipped presets and in this one, switched on or not.
    pub(crate) fn tool_names(&self, id: &str) -> Vec<String> {
        let ids = SHIPPED.iter().map(|(id, _)| *id).chain([id]);
        let presets = ids.filter_map(|id| self.load(id).ok());
        let mut names: Vec<String> = Vec::new();
        for row in presets.flat_map(|preset| preset.rows) {
            let name = row.tool.tool_name();
            if name != BASH && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Copies a preset to a new one of the directory, for a person to edit: without the place and name of the old one.
    /// Returns the file.
    ///
    /// # Errors
    ///
    /// A [`PresetError`]; nothing is written then.
    pub fn copy(&self, from: &str, to: &str) -> Result<PathBuf, PresetError> {
        check_id(to).map_err(PresetError::BadId)?;
        let (_, text) = self.text(from)?;
        let directory = self.directory.as_deref().ok_or(PresetError::NoHome)?;
        if shipped(to).is_some() {
            return Err(PresetError::Exists(to.to_owned()));
        }
        let written = |path: &Path| {
            let path = path.to_owned();
            move |source| PresetError::Write { path, source }
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(written(directory))?;
        let path = directory.join(format!("{to}.toml"));
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut file = match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(PresetError::Exists(to.to_owned()));
            }
            file => file.map_err(written(&path))?,
        };
        file.write_all(unnamed(&text).as_bytes())
            .map_err(written(&path))?;
        Ok(path)
    }

    fn text(&self, id: &str) -> Result<(String, String), PresetError> {
        check_id(id).map_err(PresetError::BadId)?;
        let file = self.directory.as_ref();
        let file = file.map(|directory| directory.join(format!("{id}.toml")));
        match (shipped(id), &file) {
            (Some(_), Some(file)) if file.symlink_metadata().is_ok() => {
                let (id, file) = (id.to_owned(), file.clone());
                return Err(PresetError::Twice { id, file });
            }
            (Some(text), _) => return Ok((format!("preset {id}"), text.to_owned())),
            (None, _) => {}
        }
        let missing = || PresetError::NotFound {
            id: id.to_owned(),
            available: self.ids().join(", "),
        };
        let path = file.ok_or_else(missing)?;
        match read_file(&path) {
            Ok(text) => Ok((path.display().to_string(), text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
            Err(error) => Err(ConfigError::Unreadable {
                path,
                reason: error.to_string(),
            }
            .into()),
        }
    }
}

fn shipped(id: &str) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|(shipped, _)| *shipped == id)
        .map(|(_, text)| *text)
}

/// What could be read of a preset.
struct Read {
    preset: Preset,
    /// The names of the tools of all rows.
    tools: Vec<String>,
    faults: Vec<Fault>,
}

/// # Errors
///
/// The one fault that hides all others.
fn parse(id: &str, text: &str) -> Result<Read, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut root = decode::syntax(text)?;
    let names = written_names(root.get(TOOLS));
    let tools = rows(TOOLS, root.remove(TOOLS), &mut faults);
    let head = decode::table::<Head>("", root, &mut faults).unwrap_or_default();
    let rows: Vec<ToolRow> = tools
        .into_iter()
        .filter_map(|row| tool_row(row, &mut faults))
        .collect();
    faults.extend(repeated(&rows));
    let preset = Preset {
        id: id.to_owned(),
        name: head.name,
        order: head.order,
        description: head.description,
        persona: head.persona,
        rows,
    };
    let tools = names;
    Ok(Read {
        preset,
        tools,
        faults,
    })
}

/// What the tools of rows are called, whatever else is wrong with the rows.
fn written_names(rows: Option<&Value>) -> Vec<String> {
    let rows = rows.and_then(Value::as_array).into_iter().flatten();
    let name = |row: &Value| {
        let default = match row.get("name")?.as_str()? {
            BASH => return Some(BASH.to_owned()),
            other => other,
        };
        let name = row.get("config").and_then(|config| config.get("tool_name"));
        Some(name.and_then(Value::as_str).unwrap_or(default).to_owned())
    };
    rows.filter_map(name).collect()
}

fn tool_row(row: Row, faults: &mut Vec<Fault>) -> Option<ToolRow> {
    let place = row.config_key(TOOLS);
    let tool = match row.name.as_str() {
        "bash" => {
            decode::table::<Nothing>(&place, row.config, faults)?;
            ToolKind::Bash
        }
        "subagent" => {
            let config: ToolSubagentConfig = decode::table(&place, row.config, faults)?;
            if let Err(wrong) = config.validate() {
                let problems = wrong.problems().iter();
                faults.extend(problems.map(|problem| Fault::new(&place, problem.clone())));
            }
            ToolKind::Subagent(Box::new(config))
        }
        other => {
            let problem = format!("there is no tool \"{other}\": it is \"bash\" or \"subagent\"");
            faults.push(Fault::new(&format!("{TOOLS}.{}.name", row.id), problem));
            return None;
        }
    };
    Some(ToolRow {
        id: row.id,
        disabled: row.disabled,
        tool,
    })
}

/// A row without anything to configure.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Two rows that are switched on cannot give an agent tools of the same name, nor one that the host's tools have under any
/// vocabulary.
fn repeated(rows: &[ToolRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let words = [Vocabulary::Task, Vocabulary::Job].into_iter();
    let hosts: Vec<&str> = words
        .flat_map(|words| [words.output_tool(), words.list_tool(), words.kill_tool()])
        .collect();
    for row in rows.iter().filter(|row| !row.disabled) {
        let name = row.tool.tool_name();
        if hosts.contains(&name) {
            let key = format!("{TOOLS}.{}", row.id);
            faults.push(Fault::new(
                &key,
                format!("a tool \"{name}\" is there already: it controls background work"),
            ));
        }
        if names.contains(&name) {
            let key = format!("{TOOLS}.{}", row.id);
            faults.push(Fault::new(
                &key,
                format!("another row has a tool \"{name}\" already: names are unique"),
            ));
        }
        names.push(name);
    }
    faults
}

impl ToolKind {
    pub(crate) fn tool_name(&self) -> &str {
        match self {
            Self::Bash => BASH,
            Self::Subagent(config) => &config.tool_name,
        }
    }

    /// The tools that children of it are allowed or denied, each after the name of that list.
    pub(crate) fn filtered<'a>(&'a self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let filter = match self {
            Self::Bash => None,
            Self::Subagent(config) => config.tool_filter.as_ref(),
        };
        let lists = filter.map(|filter| [("allow", &filter.allow), ("deny", &filter.deny)]);
        let names = |(list, names): (&'static str, &'a Option<Vec<String>>)| {
            names.iter().flatten().map(move |name| (list, name.as_str()))
        };
        lists.into_iter().flatten().flat_map(names)
    }
}

/// The text without name and place, which are those of the original alone.
fn unnamed(text: &str) -> String {
    let own = |line: &str| {
        let key = line.split('=').next().unwrap_or_default().trim();
        key == "name" || key == "order"
    };
    let head = text.find("\n[").unwrap_or(text.len());
    let (head, rest) = text.split_at(head);
    let kept: Vec<&str> = head.lines().filter(|line| !own(line)).collect();
    let short = kept.join("\n") + rest;
    let parsed = |text: &str| text.parse::<Table>().ok();
    let wanted = parsed(text).map(|mut table| {
        table.remove("name");
        table.remove("order");
        table
    });
    match wanted {
        // Written in another way than it looked: comments are lost then.
        Some(wanted) if parsed(&short).as_ref() != Some(&wanted) => toml::to_string(&wanted).unwrap_or(short),
        Some(_) | None => short,
    }
}
