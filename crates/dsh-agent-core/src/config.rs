//! What a deployment can set: one table per crate.

mod agent;
pub(crate) mod decode;
mod load;
mod model;

pub use agent::{AgentTable, ApprovalTable};
pub use load::Source;
pub use model::{ModelOverrides, ModelTable, OverrideError, Provider};

use std::num::NonZeroU64;
use std::time::Duration;

use dsh_agent::WakePolicy;
use dsh_agent_loop::LoopConfig;
use dsh_bash_local::LocalBashConfig;
use dsh_tasks::{Access, MAX_LIMIT, TasksConfig, Vocabulary};
use dsh_tool_bash::ToolBashConfig;
use dsh_tool_tasks::ToolTasksConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::Control;
use crate::error::{ConfigError, Fault};

/// The tool that is always there.
pub(crate) const BASH: &str = "bash";

/// The longest time that can be set, in milliseconds: more than three weeks.
const MAX_TIME_MS: f64 = 2_147_483_647.0;

/// The whole configuration. Absent keys have their defaults; unknown ones are refused.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The word the model sees for background work: `task_output` or `job_output`.
    #[serde(with = "VocabularyName")]
    #[schemars(with = "VocabularyName")]
    pub vocabulary: Vocabulary,
    /// The model that answers.
    pub model: ModelTable,
    /// How agents work.
    pub agent: AgentTable,
    /// What a person is asked about before it is done.
    pub approval: ApprovalTable,
    /// The task registry.
    pub tasks: TasksTable,
    /// The tools that read, list and kill tasks.
    pub tool_tasks: ToolTasksTable,
    /// The executor of commands on this machine.
    pub bash: LocalBashConfig,
    /// The `bash` tool.
    pub tool_bash: ToolBashConfig,
}

/// `[tasks]`: the task registry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TasksTable {
    /// How many running tasks one agent may have. At least 1.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    pub max_concurrent_tasks_per_owner: u64,
    /// How many finished tasks that nobody owns are kept; the oldest beyond it expire.
    pub retained_unowned: usize,
    /// How long a disposal waits for work that was asked to end, in milliseconds; so long a turn that is stopped waits for
    /// its calls, too.
    #[schemars(range(min = 1.0, max = MAX_TIME_MS))]
    pub dispose_timeout_ms: f64,
    /// Whose tasks an agent may list, read and kill: only its own, or also those of the agents that work for it.
    #[serde(with = "AccessName")]
    #[schemars(with = "AccessName")]
    pub access: Access,
}

/// `[tool_tasks]`: the tools that read, list and kill tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolTasksTable {
    /// Whether the model gets these tools. Without them nothing can run in the background, since nobody could read or
    /// stop it: the `bash` tool does not offer it.
    pub enabled: bool,
    /// How long a wait lasts when the model does not say, in milliseconds.
    #[schemars(range(min = 1.0))]
    pub wait_timeout_ms: f64,
    /// The longest wait a model can ask for, in milliseconds; a longer one is cut down to it.
    #[schemars(range(min = 1.0))]
    pub max_wait_timeout_ms: f64,
    /// The most bytes of a stream that one read shows: of more it shows head and tail, and says what it left out.
    #[schemars(range(min = 1))]
    pub max_read_bytes: usize,
    /// Whether the end of a task wakes an idle agent.
    pub completion_delivery: CompletionDelivery,
    /// How often in a row it does, until a person says something. At least 1.
    #[schemars(range(min = 1))]
    pub max_consecutive_wakes: u32,
}

/// Whether the end of a task wakes an idle agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompletionDelivery {
    /// It opens a turn.
    #[default]
    Wakeup,
    /// It waits for the next turn.
    Quiet,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Access", rename_all = "kebab-case")]
enum AccessName {
    Own,
    OwnAndDescendants,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Vocabulary", rename_all = "lowercase")]
enum VocabularyName {
    Task,
    Job,
}

impl Config {
    /// The JSON Schema of the configuration file.
    pub fn schema() -> serde_json::Value {
        schemars::schema_for!(Self).to_value()
    }

    /// The configuration as the file that would set it.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Unwritable`] for a value that no file can have, such as a path that is not UTF-8.
    pub fn to_toml(&self) -> Result<String, ConfigError> {
        toml::to_string_pretty(self).map_err(|error| ConfigError::Unwritable {
            reason: error.to_string(),
        })
    }

    /// Checks everything about the values that their types cannot say.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let faults = self.faults();
        if faults.is_empty() {
            return Ok(());
        }
        Err(ConfigError::Faults {
            origin: "configuration".to_owned(),
            faults,
        })
    }

    /// Everything about the values that their types cannot say.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        let mut faults = self.model.faults();
        faults.extend(self.agent.faults());
        let limit = self.tasks.max_concurrent_tasks_per_owner;
        if !(1..=MAX_LIMIT).contains(&limit) {
            faults.push(Fault::new(
                "tasks.max_concurrent_tasks_per_owner",
                format!("must be a whole number from 1 to {MAX_LIMIT}, is {limit}"),
            ));
        }
        let timeout = time_fault("tasks.dispose_timeout_ms", self.tasks.dispose_timeout_ms);
        faults.extend(timeout);
        if self.tool_tasks.max_consecutive_wakes == 0 {
            faults.push(Fault::new(
                "tool_tasks.max_consecutive_wakes",
                "must be at least 1, is 0: for no wakes set completion_delivery = \"quiet\"".to_owned(),
            ));
        }
        if let Err(wrong) = self.tool_tasks.settings().validate() {
            faults.extend(
                wrong
                    .problems()
                    .iter()
                    .map(|problem| Fault::new("tool_tasks", problem.clone())),
            );
        }
        if let Err(wrong) = self.bash.validate() {
            faults.extend(
                wrong
                    .0
                    .iter()
                    .map(|problem| Fault::new("bash", problem.to_string())),
            );
        }
        faults
    }

    /// The tools that the host has.
    pub(crate) fn host_tools(&self) -> Vec<String> {
        let words = self.vocabulary;
        let mut tools = vec![BASH.to_owned()];
        if self.tool_tasks.enabled {
            tools.extend([words.output_tool(), words.list_tool(), words.kill_tool()].map(ToOwned::to_owned));
        }
        tools
    }

    /// What names tools that are none: the host's are there, and `more`.
    pub(crate) fn unknown_tools(&self, more: impl IntoIterator<Item = String>) -> Vec<Fault> {
        let mut tools = self.host_tools();
        tools.extend(more);
        agent::unknown_tools(&self.agent, &self.approval, &tools)
    }

    /// The settings of the loop.
    pub(crate) fn agent_loop(&self) -> LoopConfig {
        LoopConfig {
            dispose_timeout: self.dispose_timeout(),
            wake: self.tool_tasks.wake_policy(),
            ..self.agent.settings()
        }
    }

    /// The registry's settings. Values out of range, which [`faults`](Self::faults) names, are put into it.
    pub(crate) fn tasks(&self) -> TasksConfig {
        let limit = self.tasks.max_concurrent_tasks_per_owner;
        TasksConfig {
            max_concurrent_tasks_per_owner: NonZeroU64::new(limit).unwrap_or(NonZeroU64::MIN),
            retained_unowned: self.tasks.retained_unowned,
            dispose_timeout: self.dispose_timeout(),
            vocabulary: self.vocabulary,
            ..TasksConfig::default()
        }
    }

    fn dispose_timeout(&self) -> Duration {
        time(self.tasks.dispose_timeout_ms)
    }
}

/// A time in milliseconds; without end if it is none, which [`time_fault`] says.
pub(crate) fn time(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::MAX)
}

/// What is wrong with a time in milliseconds.
fn time_fault(key: &str, ms: f64) -> Option<Fault> {
    let problem = || format!("must be a number of milliseconds from 1 to {MAX_TIME_MS}, is {ms}");
    (!(1.0..=MAX_TIME_MS).contains(&ms)).then(|| Fault::new(key, problem()))
}

impl ToolTasksTable {
    /// Whether tasks can be controlled.
    pub(crate) fn control(&self) -> Control {
        match self.enabled {
            true => Control::Attached,
            false => Control::Off,
        }
    }

    pub(crate) fn settings(&self) -> ToolTasksConfig {
        ToolTasksConfig {
            wait_timeout_ms: self.wait_timeout_ms,
            max_wait_timeout_ms: self.max_wait_timeout_ms,
            max_read_bytes: self.max_read_bytes,
            ..ToolTasksConfig::default()
        }
    }

    fn wake_policy(&self) -> WakePolicy {
        match self.completion_delivery {
            CompletionDelivery::Wakeup => WakePolicy::Wake {
                max_consecutive: self.max_consecutive_wakes,
            },
            CompletionDelivery::Quiet => WakePolicy::Quiet,
        }
    }
}

impl Default for TasksTable {
    fn default() -> Self {
        let TasksConfig {
            max_concurrent_tasks_per_owner,
            retained_unowned,
            dispose_timeout,
            access,
            vocabulary: _,
        } = TasksConfig::default();
        Self {
            max_concurrent_tasks_per_owner: max_concurrent_tasks_per_owner.get(),
            retained_unowned,
            dispose_timeout_ms: dispose_timeout.as_secs_f64() * 1000.0,
            access,
        }
    }
}

impl Default for ToolTasksTable {
    fn default() -> Self {
        let ToolTasksConfig {
            wait_timeout_ms,
            max_wait_timeout_ms,
            max_read_bytes,
            serves: _,
        } = ToolTasksConfig::default();
        Self {
            enabled: true,
            wait_timeout_ms,
            max_wait_timeout_ms,
            max_read_bytes,
            completion_delivery: CompletionDelivery::default(),
            max_consecutive_wakes: match WakePolicy::default() {
                WakePolicy::Wake { max_consecutive } => max_consecutive,
                WakePolicy::Quiet => 0,
            },
        }
    }
}
