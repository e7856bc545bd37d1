//! How a deployment configures an agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_subagent_process::Variable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::Graces;
use crate::error::{ConfigError, ConfigErrors};

/// The greatest grace: a signed number of 32 bits.
const MAX_GRACE_MS: f64 = 2_147_483_647.0;

/// One agent. Every key but `command` may be left out; unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcpConfig {
    /// The name that tools delegate to.
    #[serde(default = "provider_name")]
    pub provider_name: String,
    /// The program: an absolute path, or a bare name that is looked up on the `PATH` that the program gets.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where it works, instead of where the agent works that delegates. What is not absolute begins where this program was
    /// started.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// What is answered when it wants to be allowed something.
    #[serde(default)]
    pub permission: Permission,
    /// Variables over the program's own scrubbed environment; `false` removes one.
    #[serde(default)]
    pub env: BTreeMap<String, Variable>,
    /// How long it has to end by itself when its input has ended, in milliseconds.
    #[serde(default = "eof_grace_ms")]
    pub dispose_eof_grace_ms: f64,
    /// How long it has between the request to end and the kill, in milliseconds, and how long its exit is waited for when
    /// it stops to talk.
    #[serde(default = "grace_ms")]
    pub dispose_grace_ms: f64,
}

/// What is answered when an agent wants to be allowed something: there is nobody who could be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// It is not allowed.
    #[default]
    Reject,
    /// It is allowed, where the agent offers that: once, or for always, whichever it offers first.
    Allow,
}

impl AcpConfig {
    /// This program, and all else as it is by default.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            provider_name: provider_name(),
            command: command.into(),
            args: Vec::new(),
            cwd: None,
            permission: Permission::default(),
            env: BTreeMap::new(),
            dispose_eof_grace_ms: eof_grace_ms(),
            dispose_grace_ms: grace_ms(),
        }
    }

    /// Checks every value. Whether the directory can be entered is seen at the installation, whether there is such a program
    /// when it is started.
    ///
    /// # Errors
    ///
    /// All that is wrong, at once, each naming its key.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        ConfigErrors::unless_empty(self.faults())
    }

    /// The directory, if one is configured: absolute, and one that can be entered.
    pub(crate) fn resolve(&self) -> Result<Option<PathBuf>, ConfigErrors> {
        let mut faults = self.faults();
        let cwd = match self.cwd.as_deref().filter(|cwd| !cwd.as_os_str().is_empty()) {
            Some(cwd) => match std::path::absolute(cwd) {
                Ok(cwd) => Some(cwd),
                Err(_) => {
                    faults.push(ConfigError::Relative(cwd.to_owned()));
                    None
                }
            },
            None => None,
        };
        if let Some(cwd) = &cwd
            && !can_be_entered(cwd)
        {
            faults.push(ConfigError::Inaccessible(cwd.clone()));
        }
        ConfigErrors::unless_empty(faults)?;
        Ok(cwd)
    }

    pub(crate) fn graces(&self) -> Graces {
        Graces {
            eof: duration(self.dispose_eof_grace_ms),
            end: duration(self.dispose_grace_ms),
        }
    }

    fn faults(&self) -> Vec<ConfigError> {
        let mut faults = Vec::new();
        if self.provider_name.is_empty() {
            faults.push(ConfigError::EmptyProviderName);
        }
        let command = Path::new(&self.command);
        if self.command.is_empty() {
            faults.push(ConfigError::EmptyCommand);
        } else if self.command.contains('/') && !command.is_absolute() {
            faults.push(ConfigError::RelativeCommand(command.to_owned()));
        }
        if self.cwd.as_deref().is_some_and(|cwd| cwd.as_os_str().is_empty()) {
            faults.push(ConfigError::EmptyCwd);
        }
        let not_a_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        let wrong = self.env.keys().filter(not_a_name);
        faults.extend(wrong.map(|name| ConfigError::NotAName(name.clone())));
        let graces = [
            ("dispose_eof_grace_ms", self.dispose_eof_grace_ms),
            ("dispose_grace_ms", self.dispose_grace_ms),
        ];
        for (key, grace) in graces {
            if !(grace.is_finite() && grace > 0.0) {
                faults.push(ConfigError::GraceNotPositive(key));
            } else if grace > MAX_GRACE_MS {
                faults.push(ConfigError::GraceTooGreat(key));
            }
        }
        faults
    }
}

fn provider_name() -> String {
    "acp".to_owned()
}

fn eof_grace_ms() -> f64 {
    6_000.0
}

fn grace_ms() -> f64 {
    3_000.0
}

fn duration(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms.ceil() / 1000.0).unwrap_or(Duration::MAX)
}

/// Only who may search a directory can see that it is in itself.
fn can_be_entered(cwd: &Path) -> bool {
    std::fs::metadata(cwd.join(".")).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests;
