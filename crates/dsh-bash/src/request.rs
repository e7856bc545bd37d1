//! What to run: as asked for, and as resolved.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A command somebody wants run; everything but the command may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BashRequest {
    /// The shell text, handed to the shell unchanged.
    pub command: String,
    /// Where to run it; a relative path is taken against the process's working directory.
    pub workdir: Option<PathBuf>,
    /// How long it may take, in milliseconds.
    pub timeout_ms: Option<f64>,
    /// How many bytes of standard output the result may carry. May exceed the executor's own budget: it is for callers
    /// that parse the output, not for a model.
    pub stdout_max_bytes: Option<f64>,
    /// Text for standard input. Without it the command reads the null device; an empty text is an empty pipe.
    pub stdin: Option<String>,
    /// Ordinary variables for the command. They win over everything ambient, whatever their names look like.
    pub env: BTreeMap<String, String>,
    /// The harness's own variables: `DSH_*` names only, and the only way to set one.
    pub dsh_env: BTreeMap<String, String>,
}

impl BashRequest {
    /// Asks for `command` with every default.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            ..Self::default()
        }
    }
}

/// A request with every default and cap applied; what executors run.
#[derive(Debug, Clone, PartialEq)]
pub struct BashSpec {
    /// The shell text, not blank and without NUL.
    pub command: String,
    /// Where it runs; absolute.
    pub workdir: PathBuf,
    /// How long a caller in the foreground waits before it ends the command: the request's timeout or the executor's
    /// default, at most the executor's maximum.
    pub timeout: Duration,
    /// How long the command may live in the background: exactly what the request asked for, `None` for as long as it
    /// takes. The maximum does not apply: it protects a caller who waits, and nobody waits here.
    pub deadline: Option<Duration>,
    /// Bytes of standard output a foreground result carries.
    pub stdout_max_bytes: usize,
    /// Bytes of standard error a foreground result carries.
    pub stderr_max_bytes: usize,
    /// Text for standard input; `None` is the null device.
    pub stdin: Option<String>,
    /// Ordinary variables, none of them `DSH_*`.
    pub env: BTreeMap<String, String>,
    /// Managed variables, all of them `DSH_*`.
    pub dsh_env: BTreeMap<String, String>,
}
