//! How a deployment configures Codex.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dsh_subagent_process::Variable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ConfigError, ConfigErrors};

/// Names the program for every provider whose configuration does not.
pub const PROGRAM_VARIABLE: &str = "DSH_CODEX";

/// The greatest grace: a signed number of 32 bits.
const MAX_GRACE_MS: f64 = 2_147_483_647.0;

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
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        ConfigErrors::unless_empty(self.faults())
    }

    /// The program, which `variable` names if the configuration does not.
    pub(crate) fn resolve(&self, variable: Option<OsString>) -> Result<PathBuf, ConfigErrors> {
        let mut faults = self.faults();
        let variable = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
        let Some(program) = self.program.clone().or(variable) else {
            faults.push(ConfigError::NoProgram);
            return Err(ConfigErrors(faults));
        };
        if self.program.is_none() {
            faults.extend(wrong_program(PROGRAM_VARIABLE, &program));
        }
        ConfigErrors::unless_empty(faults)?;
        Ok(program)
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
    /// Its name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::ApproveForMe => "approve-for-me",
            Self::DangerouslyBypassApprovalsAndSandbox => "dangerously-bypass-approvals-and-sandbox",
        }
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
mod tests {
    use super::*;

    fn texts(errors: ConfigErrors) -> Vec<String> {
        errors.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn s153_a_grace_is_a_positive_finite_number_of_at_most_31_bits() {
        for grace in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let config = CodexConfig {
                dispose_grace_ms: grace,
                ..CodexConfig::default()
            };
            assert_eq!(
                texts(config.validate().expect_err("no grace")),
                ["subagent-codex: dispose_grace_ms must be a positive finite number"],
                "{grace}"
            );
        }
        let mut config = CodexConfig {
            dispose_grace_ms: MAX_GRACE_MS,
            ..CodexConfig::default()
        };
        config.validate().expect("the longest");
        config.dispose_grace_ms += 1.0;
        assert_eq!(
            texts(config.validate().expect_err("too long")),
            ["subagent-codex: dispose_grace_ms must be no greater than 2147483647"]
        );
    }

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
    fn all_that_is_wrong_is_told_at_once() {
        let config = CodexConfig {
            provider_name: String::new(),
            program: Some("codex".into()),
            env: BTreeMap::from([("A=B".to_owned(), Variable::Removed)]),
            dispose_grace_ms: 0.0,
            ..CodexConfig::default()
        };
        assert_eq!(
            config.validate().expect_err("four faults").to_string(),
            "subagent-codex: provider_name must not be empty\n\
             subagent-codex: program must be the absolute path of the native codex program, not codex\n\
             subagent-codex: env cannot name \"A=B\"; a name is not empty and holds neither \"=\" nor NUL\n\
             subagent-codex: dispose_grace_ms must be a positive finite number"
        );
    }

    #[test]
    fn s209_the_program_is_configured_or_named_by_the_variable_and_never_searched() {
        let unnamed = CodexConfig::default();
        let named = CodexConfig {
            program: Some("/opt/codex".into()),
            ..CodexConfig::default()
        };
        assert_eq!(named.resolve(Some("/other".into())), Ok("/opt/codex".into()));
        assert_eq!(unnamed.resolve(Some("/other".into())), Ok("/other".into()));
        let refused = |variable: Option<&str>| {
            let errors = unnamed.resolve(variable.map(Into::into)).expect_err("no program");
            errors.to_string()
        };
        let none = "subagent-codex: no program: set program, or the environment variable DSH_CODEX, to the absolute path of \
                    the native codex program";
        assert_eq!(refused(None), none);
        assert_eq!(refused(Some("")), none);
        assert_eq!(
            refused(Some("codex")),
            "subagent-codex: DSH_CODEX must be the absolute path of the native codex program, not codex"
        );
    }

    #[test]
    fn s192_a_fraction_of_a_millisecond_is_a_whole_one() {
        let config = CodexConfig {
            dispose_grace_ms: 0.25,
            ..CodexConfig::default()
        };
        assert_eq!(config.grace(), Duration::from_millis(1));
    }
}
