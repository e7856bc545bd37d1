//! Profiles: who can be delegated to in this harness.

use std::io;
use std::path::Path;

use dsh_scope::Scope;
use dsh_subagent::Capabilities;

use super::provider::{Means, ProviderKind};
use super::rows::{Row, check_id, read_file, rows};
use crate::config::decode;
use crate::error::{AssembleError, ConfigError, Fault};

/// The list of rows in a profile.
const PROVIDERS: &str = "providers";

/// Who can be delegated to in this harness, by rows: each mounts one provider, under a name of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub(crate) rows: Vec<ProviderRow>,
}

/// A row of a profile.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProviderRow {
    pub(crate) id: String,
    pub(crate) disabled: bool,
    pub(crate) kind: ProviderKind,
    pub(crate) given: Given,
}

/// Who gave a profile a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nobody: every profile has it.
    Base,
    /// Its file.
    File,
}

/// Why a profile is not there.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// This can be nobody's name.
    #[error("profile name {0}")]
    BadName(String),
    /// There is none of this name.
    #[error("profile \"{name}\" does not exist: there is no file {file}")]
    NotFound {
        /// The name.
        name: String,
        /// Where it would be.
        file: String,
    },
    /// What is in its file.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Profile {
    /// The one that is used unless another one is chosen. It needs no file.
    pub const DEFAULT: &str = "default";

    /// The rows of every profile: the agents in this process, one that starts fresh and one that knows the conversation. A row
    /// of the same id in a file takes their place.
    pub fn base() -> Self {
        Self {
            rows: vec![
                ProviderRow {
                    id: "subagent-spawn".to_owned(),
                    disabled: false,
                    kind: ProviderKind::spawn(),
                    given: Given::Base,
                },
                ProviderRow {
                    id: "subagent-fork".to_owned(),
                    disabled: false,
                    kind: ProviderKind::fork(),
                    given: Given::Base,
                },
            ],
        }
    }

    /// The base with the rows of `<name>.toml` in `directory`.
    ///
    /// # Errors
    ///
    /// A [`ProfileError`]: there is no such file, unless it is the default's, or everything that is wrong in it.
    pub fn load(directory: Option<&Path>, name: &str) -> Result<Self, ProfileError> {
        check_id(name).map_err(ProfileError::BadName)?;
        let path = directory.map(|directory| directory.join(format!("{name}.toml")));
        let read = match &path {
            Some(path) => read_file(path),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let shown = path.map_or_else(|| "(set DSH_HOME)".to_owned(), |path| path.display().to_string());
        let text = match read {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return if name == Self::DEFAULT {
                    Ok(Self::base())
                } else {
                    let (name, file) = (name.to_owned(), shown);
                    Err(ProfileError::NotFound { name, file })
                };
            }
            Err(error) => {
                let (path, reason) = (shown.into(), error.to_string());
                return Err(ConfigError::Unreadable { path, reason }.into());
            }
        };
        parse(&text).map_err(|faults| {
            ConfigError::Faults {
                origin: shown,
                faults,
            }
            .into()
        })
    }
}

impl Profile {
    /// Mounts whoever is switched on, those that need a model where there is one.
    pub(crate) fn mount(&self, scope: &Scope, means: &Means, has_model: bool) -> Result<(), AssembleError> {
        let rows = self.rows.iter().filter(|row| !row.disabled);
        for row in rows.filter(|row| has_model || !row.kind.needs_model()) {
            row.kind
                .mount(scope, means)
                .map_err(|source| AssembleError::Provider {
                    id: row.id.clone(),
                    source,
                })?;
        }
        Ok(())
    }

    /// What the provider of this name can be asked for, if a row that is switched on mounts it.
    pub(crate) fn capabilities(&self, provider: &str) -> Option<Capabilities> {
        let mut rows = self.rows.iter().filter(|row| !row.disabled);
        let row = rows.find(|row| row.kind.provider_name() == provider)?;
        Some(row.kind.capabilities())
    }

    /// The same with every row off that its file does not have, for who must not delegate to anybody unless that was written.
    #[must_use]
    pub fn as_written(mut self) -> Self {
        for row in &mut self.rows {
            row.disabled |= row.given == Given::Base;
        }
        self
    }

    /// Whether agents in this process are to be delegated to, so a model is needed.
    pub fn asks_for_model(&self) -> bool {
        let mut rows = self.rows.iter();
        rows.any(|row| !row.disabled && row.kind.needs_model())
    }
}

fn parse(text: &str) -> Result<Profile, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut root = decode::syntax(text)?;
    let written = rows(PROVIDERS, root.remove(PROVIDERS), &mut faults);
    for key in root.keys() {
        faults.push(Fault::new(
            key,
            format!("unknown key: a profile has [[{PROVIDERS}]] only"),
        ));
    }
    let mut profile = Profile::base();
    for row in written {
        let Some(row) = provider_row(row, &mut faults) else {
            continue;
        };
        match profile.rows.iter_mut().find(|base| base.id == row.id) {
            Some(base) => *base = row,
            None => profile.rows.push(row),
        }
    }
    faults.extend(repeated(&profile.rows));
    if faults.is_empty() {
        Ok(profile)
    } else {
        Err(faults)
    }
}

fn provider_row(row: Row, faults: &mut Vec<Fault>) -> Option<ProviderRow> {
    let (place, known) = (row.config_key(PROVIDERS), faults.len());
    let kind = ProviderKind::decode(&row.name, &place, row.config, faults);
    match kind {
        Ok(kind) => {
            let kind = kind?;
            if faults.len() == known && !row.disabled {
                let problems = kind.program_problems().into_iter();
                faults.extend(problems.map(|problem| Fault::new(&format!("{place}.program"), problem)));
            }
            Some(ProviderRow {
                id: row.id,
                disabled: row.disabled,
                kind,
                given: Given::File,
            })
        }
        Err(problem) => {
            faults.push(Fault::new(&format!("{PROVIDERS}.{}.name", row.id), problem));
            None
        }
    }
}

/// Two rows that are switched on cannot mount providers of the same name.
fn repeated(rows: &[ProviderRow]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row.disabled) {
        let name = row.kind.provider_name();
        if names.contains(&name) {
            let key = format!("{PROVIDERS}.{}", row.id);
            let problem = format!(
                "another row mounts a provider \"{name}\" already: give it a provider_name of its own"
            );
            faults.push(Fault::new(&key, problem));
        }
        names.push(name);
    }
    faults
}
