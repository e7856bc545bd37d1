//! How a deployment configures Claude Code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use dsh_subagent_process::{Check, ConfigError, NativeProgram, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAME;

/// What Claude Code is, and what names it for every provider whose configuration does not.
pub(crate) const PROGRAM: NativeProgram = NativeProgram {
    name: "claude",
    variable: "DSH_CLAUDE_CODE",
};

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
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check().finish()
    }

    /// The program: the configured one, or the one that the environment of this process names. Whether it is there is not
    /// looked at.
    ///
    /// # Errors
    ///
    /// As [`validate`](Self::validate), and that there is none.
    pub fn find_program(&self) -> Result<PathBuf, ConfigError> {
        self.resolve(std::env::var_os(PROGRAM.variable))
    }

    /// The program, which `variable` names if the configuration does not.
    pub(crate) fn resolve(&self, variable: Option<OsString>) -> Result<PathBuf, ConfigError> {
        self.check().resolve(PROGRAM, self.program.as_deref(), variable)
    }

    fn check(&self) -> Check {
        let mut check = Check::new(NAME);
        check.provider_name(&self.provider_name);
        check.program(PROGRAM, self.program.as_deref());
        check.env(&self.env);
        check.milliseconds("dispose_grace_ms", self.dispose_grace_ms);
        check
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

#[cfg(test)]
mod tests;
