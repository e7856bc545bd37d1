//! What a deployment can set.

use dsh_tasks::Serves;
use schemars::JsonSchema;
use serde::Deserialize;

/// Settings of the task tools. Absent keys have their defaults; unknown keys are refused.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolTasksConfig {
    /// How long a wait lasts when the model does not say, in milliseconds. At least 1.
    pub wait_timeout_ms: f64,
    /// The longest wait a model can ask for, in milliseconds; a longer one is cut down to it. At least 1.
    pub max_wait_timeout_ms: f64,
    /// The most bytes of a stream that one read shows: of more it shows head and tail, and says what it left out. At
    /// least 1.
    pub max_read_bytes: usize,
    /// The owners that this installation controls the tasks of. Not part of a configuration file.
    #[serde(skip, default = "everyone")]
    pub serves: Serves,
}

impl Default for ToolTasksConfig {
    fn default() -> ToolTasksConfig {
        ToolTasksConfig {
            wait_timeout_ms: 30_000.0,
            max_wait_timeout_ms: 600_000.0,
            max_read_bytes: 64_000,
            serves: everyone(),
        }
    }
}

impl ToolTasksConfig {
    /// Checks what the types cannot, and reports everything that is wrong.
    ///
    /// # Errors
    /// A [`ConfigError`] with one line per problem, each naming its key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for (key, ms) in [
            ("wait_timeout_ms", self.wait_timeout_ms),
            ("max_wait_timeout_ms", self.max_wait_timeout_ms),
        ] {
            if !(ms.is_finite() && ms >= 1.0) {
                problems.push(format!(
                    "tool-tasks: {key} ({ms}) must be a number of milliseconds, at least 1"
                ));
            }
        }
        if self.wait_timeout_ms > self.max_wait_timeout_ms {
            problems.push(format!(
                "tool-tasks: wait_timeout_ms ({}) exceeds max_wait_timeout_ms ({})",
                self.wait_timeout_ms, self.max_wait_timeout_ms
            ));
        }
        if self.max_read_bytes == 0 {
            problems.push("tool-tasks: max_read_bytes (0) must be at least 1".to_owned());
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { problems })
        }
    }

    /// How long a wait lasts for which the model asked `requested` milliseconds, or did not say.
    pub(crate) fn wait_ms(&self, requested: Option<f64>) -> f64 {
        requested
            .unwrap_or(self.wait_timeout_ms)
            .min(self.max_wait_timeout_ms)
    }
}

fn everyone() -> Serves {
    Serves::Everyone
}

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ConfigError {
    /// Each problem, as one line that names its key.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}
