//! The executor's limits, as configured.

use std::ffi::OsStr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use dsh_bash::Limits;
use dsh_subprocess::Cgroups;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NAME;
use crate::env::is_managed;
use crate::error::{ConfigError, ConfigErrors};

/// The greatest `grace_ms`, `drain_ms` and `pids_limit`: a signed number of 32 bits.
const MAX_BOUND: f64 = 2_147_483_647.0;

/// How the local executor runs commands. Every key may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LocalBashConfig {
    /// Where commands of `dsh mcp` run that name no directory; without it, where the program was started. An agent's run
    /// in the directory of its session.
    pub cwd: Option<PathBuf>,
    /// How long a foreground command may take that names no timeout, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub timeout_ms: f64,
    /// The longest timeout a foreground command may ask for, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_timeout_ms: f64,
    /// How many bytes of each output stream a result carries and memory keeps.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_output_bytes: f64,
    /// How many bytes of output one command may keep on disk.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_spill_bytes: f64,
    /// How many bytes of output all commands together may keep on disk. What one of them kept is free again when its
    /// record goes.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_total_spill_bytes: f64,
    /// How long a tree has between the request to end and the kill, and how long a pipe may stay open after it, in
    /// milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = MAX_BOUND))]
    pub grace_ms: f64,
    /// How long output is still collected after the shell's exit when members of its tree live on, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = MAX_BOUND))]
    pub drain_ms: f64,
    /// How many bytes of memory the processes of one command may use together; without it, as many as there are.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub memory_limit_bytes: Option<f64>,
    /// How many processes and threads one command may have at once; without it, as many as there are.
    #[schemars(extend("exclusiveMinimum" = 0), range(max = MAX_BOUND))]
    pub pids_limit: Option<f64>,
    /// The directory of a cgroup (version 2) that was delegated to the program, in which each command gets one of its
    /// own; without it, that of the program's own cgroup, if that can be used.
    pub cgroup: Option<PathBuf>,
    /// Names of ambient variables that commands get although they look like credentials.
    pub allow_env: Vec<String>,
    /// Names of ambient variables that commands do not get although they look harmless.
    pub deny_env: Vec<String>,
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
            memory_limit_bytes: None,
            pids_limit: None,
            cgroup: None,
            allow_env: Vec::new(),
            deny_env: Vec::new(),
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
        let limits = [
            ("memory_limit_bytes", self.memory_limit_bytes),
            ("pids_limit", self.pids_limit),
        ];
        let limits = limits.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let wrong = |(key, value): (&'static str, f64)| {
            if !(value.is_finite() && value > 0.0) {
                Some(ConfigError::NotPositive { key })
            } else if matches!(key, "grace_ms" | "drain_ms" | "pids_limit") && value > MAX_BOUND {
                Some(ConfigError::TooGreat { key })
            } else {
                None
            }
        };
        let mut errors: Vec<_> = numbers.into_iter().chain(limits).filter_map(wrong).collect();
        if self.cwd.as_ref().is_some_and(|cwd| cwd.as_os_str().is_empty()) {
            errors.push(ConfigError::EmptyCwd);
        }
        for (key, names) in [("allow_env", &self.allow_env), ("deny_env", &self.deny_env)] {
            let wrong = names.iter().filter(|name| !is_name(name));
            errors.extend(wrong.cloned().map(|name| ConfigError::NotAName { key, name }));
        }
        let managed = self.allow_env.iter().filter(|name| is_managed(OsStr::new(name)));
        errors.extend(managed.cloned().map(|name| ConfigError::Managed { name }));
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ConfigErrors(errors))
        }
    }

    /// Where whoever makes a launcher for this executor should let it make cgroups.
    pub fn cgroups(&self) -> Cgroups {
        self.cgroup.clone().map_or(Cgroups::Auto, Cgroups::Within)
    }

    /// What one command may use.
    pub(crate) fn tree_limits(&self) -> dsh_subprocess::Limits {
        let pids = self.pids_limit.map(saturating);
        dsh_subprocess::Limits {
            memory_bytes: self
                .memory_limit_bytes
                .and_then(|bytes| NonZeroU64::new(saturating(bytes) as u64)),
            pids: pids.and_then(|count| NonZeroU32::new(u32::try_from(count).unwrap_or(u32::MAX))),
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

/// Whether a variable can have this name. A blank in it is a slip: two names in one, or a name and what is around it.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| matches!(c, '=' | '\0') || c.is_whitespace())
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
