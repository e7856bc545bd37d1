//! How a deployment configures Codex.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use dsh_subagent_process::{Check, ConfigError, NativeProgram, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAME;

/// What Codex is, and what names it for every provider whose configuration does not.
pub(crate) const PROGRAM: NativeProgram = NativeProgram {
    name: "codex",
    variable: "DSH_CODEX",
};

/// One way to run Codex. Every key may be left out; unknown keys are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodexConfig {
    /// The name that tools delegate to.
    pub provider_name: String,
    /// The native `codex` program, by its absolute path; without it, what the environment variable `DSH_CODEX` names. It is
    /// never looked for on the `PATH`.
    pub program: Option<PathBuf>,
    /// Variables over the program's own scrubbed environment; `false` removes one.
    pub env: BTreeMap<String, Variable>,
    /// What Codex may do without anybody who could be asked.
    pub permission_mode: PermissionMode,
    /// How long Codex has between the request to end and the kill, in milliseconds, and how long its exit is waited for when
    /// it stops to talk.
    pub dispose_grace_ms: f64,
}

/// What Codex may do without anybody who could be asked. What its own settings allow and forbid holds within that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// What needs an approval is not done.
    #[default]
    Never,
    /// A reviewer of Codex approves or denies what reaches beyond its workspace.
    ApproveForMe,
    /// Everything, without a sandbox.
    DangerouslyBypassApprovalsAndSandbox,
}

impl Default for CodexConfig {
    fn default() -> Self {
        Self {
            provider_name: "codex".to_owned(),
            program: None,
            env: BTreeMap::new(),
            permission_mode: PermissionMode::default(),
            dispose_grace_ms: 3_000.0,
        }
    }
}

impl CodexConfig {
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
    /// Its name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::ApproveForMe => "approve-for-me",
            Self::DangerouslyBypassApprovalsAndSandbox => "dangerously-bypass-approvals-and-sandbox",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s156_three_modes_and_no_other_and_unknown_keys_are_refused() {
        fn parse(text: &str) -> Result<CodexConfig, serde_json::Error> {
            serde_json::from_str(text)
        }
        let config = parse("{}").expect("all has a default");
        assert_eq!(config, CodexConfig::default());
        assert_eq!(
            (
                config.provider_name.as_str(),
                config.permission_mode,
                config.dispose_grace_ms
            ),
            ("codex", PermissionMode::Never, 3000.0)
        );
        for mode in [
            PermissionMode::Never,
            PermissionMode::ApproveForMe,
            PermissionMode::DangerouslyBypassApprovalsAndSandbox,
        ] {
            let text = format!(r#"{{"permission_mode": "{}"}}"#, mode.as_str());
            assert_eq!(parse(&text).expect("a mode").permission_mode, mode);
        }
        for other in ["on-request", "untrusted", "on-failure", "Never"] {
            let text = format!(r#"{{"permission_mode": "{other}"}}"#);
            let error = parse(&text).expect_err(other).to_string();
            assert!(error.contains("unknown variant"), "{error}");
        }
        let error = parse(r#"{"cwd": "/"}"#).expect_err("no such key").to_string();
        assert!(error.contains("unknown field `cwd`"), "{error}");
    }

    #[test]
    fn s153_s209_all_that_is_wrong_is_told_at_once() {
        let config = CodexConfig {
            provider_name: String::new(),
            program: Some("codex".into()),
            env: BTreeMap::from([("A=B".to_owned(), Variable::Removed)]),
            dispose_grace_ms: 0.0,
            ..CodexConfig::default()
        };
        let wrong = "subagent-codex: provider_name must not be empty\n\
             subagent-codex: program must be the absolute path of the native codex program, not codex\n\
             subagent-codex: env cannot name \"A=B\"; a name is not empty and holds neither \"=\" nor NUL\n\
             subagent-codex: dispose_grace_ms must be a positive finite number";
        assert_eq!(config.validate().expect_err("four faults").to_string(), wrong);
        assert_eq!(config.resolve(None).expect_err("the same").to_string(), wrong);
        assert_eq!(
            CodexConfig::default()
                .resolve(None)
                .expect_err("no program")
                .to_string(),
            "subagent-codex: no program: set program, or the environment variable DSH_CODEX, to the absolute path of the \
             native codex program"
        );
    }
}
