//! From request to spec: the defaults, caps and refusals that all executors share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::{BashRequest, BashSpec, ResolveError};

/// An executor's limits, already validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// The executor's name, which begins its refusals (`bash-local: …`).
    pub executor: &'static str,
    /// Where commands run that name no directory; `None` is the process's working directory at the time of the call.
    pub cwd: Option<PathBuf>,
    /// How long a foreground command may take that names no timeout, in milliseconds.
    pub timeout_ms: f64,
    /// The longest timeout a foreground command may ask for, in milliseconds.
    pub max_timeout_ms: f64,
    /// Bytes that a foreground result carries of each stream.
    pub max_output_bytes: usize,
}

impl Limits {
    /// Applies the defaults and caps to `request`.
    ///
    /// Durations are whole milliseconds, rounded up; what no clock can hold saturates.
    ///
    /// # Errors
    ///
    /// [`ResolveError`], naming the field, when the command is blank or contains NUL, a number is not positive and
    /// finite, or a variable is on the wrong channel.
    pub fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError> {
        if request.command.trim().is_empty() {
            return Err(ResolveError::BlankCommand);
        }
        if request.command.contains('\0') {
            return Err(ResolveError::NulInCommand);
        }
        check_channels(&request.env, &request.dsh_env)?;
        let asked = request
            .timeout_ms
            .map(|ms| self.positive("request.timeout_ms", ms))
            .transpose()?;
        let budget = request
            .stdout_max_bytes
            .map(|n| self.positive("request.stdout_max_bytes", n))
            .transpose()?;
        let timeout = asked.unwrap_or(self.timeout_ms).min(self.max_timeout_ms);
        Ok(BashSpec {
            command: request.command,
            workdir: self.workdir(request.workdir)?,
            timeout: millis(timeout),
            deadline: asked.map(millis),
            stdout_max_bytes: budget.map_or(self.max_output_bytes, saturating_usize),
            stderr_max_bytes: self.max_output_bytes,
            stdin: request.stdin,
            env: request.env,
            dsh_env: request.dsh_env,
        })
    }

    fn positive(&self, field: &'static str, value: f64) -> Result<f64, ResolveError> {
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(ResolveError::NotPositive {
                executor: self.executor,
                field,
            })
        }
    }

    fn workdir(&self, asked: Option<PathBuf>) -> Result<PathBuf, ResolveError> {
        let path = asked
            .or_else(|| self.cwd.clone())
            .unwrap_or_else(|| PathBuf::from("."));
        if path.as_os_str().is_empty() {
            return Err(ResolveError::EmptyWorkdir);
        }
        // `absolute(".")` is the working directory itself; it fails only when that cannot be told.
        std::path::absolute(&path).map_err(|error| ResolveError::NoWorkdir {
            error: error.to_string(),
        })
    }
}

fn check_channels(
    env: &BTreeMap<String, String>,
    dsh_env: &BTreeMap<String, String>,
) -> Result<(), ResolveError> {
    if let Some(name) = env.keys().find(|name| is_managed(name)) {
        return Err(ResolveError::ManagedInEnv { name: name.clone() });
    }
    if let Some(name) = dsh_env.keys().find(|name| !is_managed(name)) {
        return Err(ResolveError::OrdinaryInDshEnv { name: name.clone() });
    }
    for (name, value) in env.iter().chain(dsh_env) {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(ResolveError::MalformedVariable { name: name.clone() });
        }
    }
    Ok(())
}

fn is_managed(name: &str) -> bool {
    name.get(..4)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("DSH_"))
}

fn millis(ms: f64) -> Duration {
    // A float cast saturates, so a timeout no clock can hold is simply the longest one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and saturating"
    )]
    Duration::from_millis(ms.ceil() as u64)
}

fn saturating_usize(bytes: f64) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and saturating"
    )]
    {
        bytes.floor().max(1.0) as usize
    }
}
