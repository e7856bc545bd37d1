//! How a deployment configures an agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dsh_subagent_process::{Check, ConfigError, Variable, milliseconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAME;
use crate::conversation::Graces;

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
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check().finish()
    }

    /// The directory, if one is configured: absolute, and one that can be entered.
    pub(crate) fn resolve(&self) -> Result<Option<PathBuf>, ConfigError> {
        let mut check = self.check();
        let configured = self.cwd.as_deref().filter(|cwd| !cwd.as_os_str().is_empty());
        let cwd = configured.map(|cwd| std::path::absolute(cwd).unwrap_or_else(|_| cwd.to_owned()));
        if let Some(cwd) = &cwd {
            if !cwd.is_absolute() {
                check.problem(format_args!("cwd must be an absolute path: {}", cwd.display()));
            } else if !can_be_entered(cwd) {
                check.problem(format_args!(
                    "cwd is not an accessible directory: {}",
                    cwd.display()
                ));
            }
        }
        check.finish()?;
        Ok(cwd)
    }

    pub(crate) fn graces(&self) -> Graces {
        Graces {
            eof: milliseconds(self.dispose_eof_grace_ms),
            end: milliseconds(self.dispose_grace_ms),
        }
    }

    fn check(&self) -> Check {
        let mut check = Check::new(NAME);
        check.provider_name(&self.provider_name);
        if self.command.is_empty() {
            check.problem("command must not be empty");
        } else if self.command.contains('/') && !Path::new(&self.command).is_absolute() {
            // It would be another program in every directory.
            check.problem(format_args!(
                "command must be an absolute path or a bare name, not {}",
                self.command
            ));
        }
        if self.cwd.as_deref().is_some_and(|cwd| cwd.as_os_str().is_empty()) {
            check.problem("cwd must not be empty");
        }
        check.argument("command", &self.command);
        for (index, argument) in self.args.iter().enumerate() {
            check.argument(&format!("args[{index}]"), argument);
        }
        check.env(&self.env);
        check.milliseconds("dispose_eof_grace_ms", self.dispose_eof_grace_ms);
        check.milliseconds("dispose_grace_ms", self.dispose_grace_ms);
        check
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

/// Only who may search a directory can see that it is in itself.
fn can_be_entered(cwd: &Path) -> bool {
    std::fs::metadata(cwd.join(".")).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests;
