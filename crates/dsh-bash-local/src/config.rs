//! The executor's limits, as configured.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use dsh_bash::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAME;
use crate::env::is_managed;
use crate::error::{ConfigError, ConfigErrors};

/// The greatest `grace_ms` and `drain_ms`: a signed number of 32 bits.
const MAX_BOUND_MS: f64 = 2_147_483_647.0;

/// How the local executor runs commands. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LocalBashConfig {
    /// Where commands run that name no directory; without it, where the program was started.
    pub cwd: Option<PathBuf>,
    /// How long a foreground command may take that names no timeout, in milliseconds.
    pub timeout_ms: f64,
    /// The longest timeout a foreground command may ask for, in milliseconds.
    pub max_timeout_ms: f64,
    /// How many bytes of each output stream a result carries and memory keeps.
    pub max_output_bytes: f64,
    /// How many bytes of output one command may keep on disk.
    pub max_spill_bytes: f64,
    /// How many bytes of output all commands together may keep on disk. What one of them kept is free again when its
    /// record goes.
    pub max_total_spill_bytes: f64,
    /// How long a tree has between the request to end and the kill, and how long a pipe may stay open after it, in
    /// milliseconds.
    pub grace_ms: f64,
    /// How long output is still collected after the shell's exit when members of its tree live on, in milliseconds.
    pub drain_ms: f64,
    /// Names of ambient variables that commands get although they look like credentials.
    pub allow_env: Vec<String>,
}

impl Default for LocalBashConfig {
    fn default() -> Self {
        Self {
            cwd: None,
            timeout_ms: 120_000.0,
            max_timeout_ms: 600_000.0,
            max_output_bytes: 64_000.0,
            max_spill_bytes: 67_108_864.0,
            max_total_spill_bytes: 1_073_741_824.0,
            grace_ms: 3_000.0,
            drain_ms: 250.0,
            allow_env: Vec::new(),
        }
    }
}

impl LocalBashConfig {
    /// Checks every value.
    ///
    /// # Errors
    ///
    /// All that is wrong, at once, each naming its key.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        let numbers = [
            ("timeout_ms", self.timeout_ms),
            ("max_timeout_ms", self.max_timeout_ms),
            ("max_output_bytes", self.max_output_bytes),
            ("max_spill_bytes", self.max_spill_bytes),
            ("max_total_spill_bytes", self.max_total_spill_bytes),
            ("grace_ms", self.grace_ms),
            ("drain_ms", self.drain_ms),
        ];
        let wrong = |(key, value): (&'static str, f64)| {
            if !(value.is_finite() && value > 0.0) {
                Some(ConfigError::NotPositive { key })
            } else if matches!(key, "grace_ms" | "drain_ms") && value > MAX_BOUND_MS {
                Some(ConfigError::TooGreat { key })
            } else {
                None
            }
        };
        let mut errors: Vec<_> = numbers.into_iter().filter_map(wrong).collect();
        if self.cwd.as_ref().is_some_and(|cwd| cwd.as_os_str().is_empty()) {
            errors.push(ConfigError::EmptyCwd);
        }
        errors.extend(self.allow_env.iter().filter_map(|name| wrong_name(name)));
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(errors))
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            executor: NAME,
            cwd: self.cwd.clone(),
            timeout_ms: self.timeout_ms,
            max_timeout_ms: self.max_timeout_ms,
            max_output_bytes: saturating(self.max_output_bytes),
        }
    }

    pub(crate) fn grace(&self) -> Duration {
        millis(self.grace_ms)
    }

    pub(crate) fn drain(&self) -> Duration {
        millis(self.drain_ms)
    }
}

fn wrong_name(name: &str) -> Option<ConfigError> {
    let name = name.to_owned();
    if name.is_empty() || name.contains(['=', '\0']) {
        Some(ConfigError::NotAName { name })
    } else if is_managed(OsStr::new(&name)) {
        Some(ConfigError::Managed { name })
    } else {
        None
    }
}

fn millis(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX)
}

pub(crate) fn saturating(bytes: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and saturating"
    )]
    {
        bytes.floor().max(1.0) as usize
    }
}
