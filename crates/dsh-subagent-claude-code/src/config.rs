//! How a deployment configures Claude Code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_subagent_process::Variable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ConfigError, ConfigErrors};

/// Names the program for every provider whose configuration does not.
pub const PROGRAM_VARIABLE: &str = "DSH_CLAUDE_CODE";

/// The greatest grace: a signed number of 32 bits.
const MAX_GRACE_MS: f64 = 2_147_483_647.0;

/// One way to run Claude Code. Every key may be left out; unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeCodeConfig {
    /// The name that tools delegate to.
    pub provider_name: String,
    /// The native `claude` program, by its absolute path; without it, what the environment variable `DSH_CLAUDE_CODE` names.
    /// It is never looked for on the `PATH`.
    pub program: Option<PathBuf>,
    /// Variables over the program's own scrubbed environment; `false` removes one.
    pub env: BTreeMap<String, Variable>,
    /// What Claude Code may do without anybody who could be asked.
    pub permission_mode: PermissionMode,
    /// How long Claude Code has between the request to end and the kill, in milliseconds, and how long its exit is waited
    /// for when it stops to talk.
    pub dispose_grace_ms: f64,
}

/// What Claude Code may do without anybody who could be asked. What its own settings allow and forbid holds within that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PermissionMode {
    /// What is not allowed beforehand is denied.
    #[default]
    DontAsk,
    /// Files in its directory are edited; the rest is denied unless it is allowed.
    AcceptEdits,
    /// A classifier of Claude Code approves or denies.
    Auto,
    /// It only reads, and its answer is a plan.
    Plan,
    /// Everything.
    BypassPermissions,
}

impl Default for ClaudeCodeConfig {
    fn default() -> Self {
        Self {
            provider_name: "claude-code".to_owned(),
            program: None,
            env: BTreeMap::new(),
            permission_mode: PermissionMode::default(),
            dispose_grace_ms: 3_000.0,
        }
    }
}

impl ClaudeCodeConfig {
    /// Checks every value. Whether there is a program at all is seen at the installation.
    ///
    /// # Errors
    ///
    /// All that is wrong, at once, each naming its key.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        ConfigErrors::unless_empty(self.faults())
    }

    /// The program, which `variable` names if the configuration does not.
    pub(crate) fn resolve(&self, variable: Option<OsString>) -> Result<PathBuf, ConfigErrors> {
        let mut faults = self.faults();
        let variable = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
        let program = match (&self.program, variable) {
            // Looked at with the rest.
            (Some(program), _) => Some(program.clone()),
            (None, Some(program)) => {
                faults.extend(wrong_program(PROGRAM_VARIABLE, &program));
                Some(program)
            }
            (None, None) => None,
        };
        match program {
            Some(program) if faults.is_empty() => return Ok(program),
            Some(_) => {}
            None => faults.push(ConfigError::NoProgram),
        }
        Err(ConfigErrors(faults))
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::try_from_secs_f64(self.dispose_grace_ms.ceil() / 1000.0).unwrap_or(Duration::MAX)
    }

    fn faults(&self) -> Vec<ConfigError> {
        let mut faults = Vec::new();
        if self.provider_name.is_empty() {
            faults.push(ConfigError::EmptyProviderName);
        }
        let program = self.program.as_deref();
        faults.extend(program.and_then(|program| wrong_program("program", program)));
        let not_a_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        let wrong = self.env.keys().filter(not_a_name);
        faults.extend(wrong.map(|name| ConfigError::NotAName { name: name.clone() }));
        let grace = self.dispose_grace_ms;
        if !(grace.is_finite() && grace > 0.0) {
            faults.push(ConfigError::GraceNotPositive);
        } else if grace > MAX_GRACE_MS {
            faults.push(ConfigError::GraceTooGreat);
        }
        faults
    }
}

impl PermissionMode {
    /// Its name, in a configuration and for Claude Code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DontAsk => "dontAsk",
            Self::AcceptEdits => "acceptEdits",
            Self::Auto => "auto",
            Self::Plan => "plan",
            Self::BypassPermissions => "bypassPermissions",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A bare name would be looked up on the `PATH`, and a relative path below the directory of a task.
fn wrong_program(key: &'static str, program: &Path) -> Option<ConfigError> {
    (!program.is_absolute()).then(|| ConfigError::RelativeProgram {
        key,
        program: program.to_owned(),
    })
}

#[cfg(test)]
mod tests;
