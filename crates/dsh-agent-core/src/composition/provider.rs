//! Who a row of a profile mounts.

use std::ffi::OsString;
use std::sync::Arc;

use dsh_agent::AgentFactory;
use dsh_scope::Scope;
use dsh_subagent::SubagentRegistry;
use dsh_subagent_inprocess::{InProcessConfig, Origin};
use dsh_subprocess::Launcher;
use dsh_tasks::TaskRegistry;
use dsh_tools::ToolRegistry;
use serde::de::DeserializeOwned;
use toml::Table;

use crate::config::decode;
use crate::error::Fault;

/// Who a row mounts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProviderKind {
    /// Agents in this process.
    InProcess(Origin, InProcessConfig),
    #[cfg(feature = "codex")]
    Codex(dsh_subagent_codex::CodexConfig),
    #[cfg(feature = "claude-code")]
    ClaudeCode(dsh_subagent_claude_code::ClaudeCodeConfig),
    #[cfg(feature = "acp")]
    Acp(dsh_subagent_acp::AcpConfig),
}

/// What providers are made with.
#[cfg_attr(
    not(any(feature = "codex", feature = "claude-code", feature = "acp")),
    expect(dead_code, reason = "processes are what products need")
)]
pub(crate) struct Means {
    pub(crate) subagents: SubagentRegistry,
    pub(crate) agents: Arc<dyn AgentFactory>,
    pub(crate) tools: ToolRegistry,
    pub(crate) tasks: TaskRegistry,
    pub(crate) launcher: Launcher,
    /// What is left of this program's environment without credentials.
    pub(crate) ambient: Vec<(OsString, OsString)>,
}

/// Why a provider could not be mounted.
pub(crate) type MountError = Box<dyn std::error::Error + Send + Sync>;

impl ProviderKind {
    pub(crate) fn spawn() -> Self {
        Self::InProcess(Origin::Spawn, InProcessConfig::default())
    }

    pub(crate) fn fork() -> Self {
        Self::InProcess(Origin::Fork, InProcessConfig::default())
    }

    /// Reads the configuration of what is called `name`; nothing if something is wrong with it.
    ///
    /// # Errors
    ///
    /// What is wrong with the name.
    pub(crate) fn decode(
        name: &str,
        place: &str,
        table: Table,
        faults: &mut Vec<Fault>,
    ) -> Result<Option<Self>, String> {
        let origin = match name {
            "spawn" => Origin::Spawn,
            "fork" => Origin::Fork,
            #[cfg(feature = "codex")]
            "codex" => return Ok(checked(place, table, faults).map(Self::Codex)),
            #[cfg(feature = "claude-code")]
            "claude-code" => return Ok(checked(place, table, faults).map(Self::ClaudeCode)),
            #[cfg(feature = "acp")]
            "acp" => return Ok(checked(place, table, faults).map(Self::Acp)),
            #[cfg(not(feature = "codex"))]
            "codex" => return Err(without(name)),
            #[cfg(not(feature = "claude-code"))]
            "claude-code" => return Err(without(name)),
            #[cfg(not(feature = "acp"))]
            "acp" => return Err(without(name)),
            other => {
                return Err(format!(
                    "there is no provider \"{other}\": it is \"spawn\", \"fork\", \"codex\", \"claude-code\" or \"acp\""
                ));
            }
        };
        Ok(checked(place, table, faults).map(|config| Self::InProcess(origin, config)))
    }

    /// The name that tools delegate to.
    pub(crate) fn provider_name(&self) -> &str {
        match self {
            Self::InProcess(origin, config) => config.provider_name(*origin),
            #[cfg(feature = "codex")]
            Self::Codex(config) => &config.provider_name,
            #[cfg(feature = "claude-code")]
            Self::ClaudeCode(config) => &config.provider_name,
            #[cfg(feature = "acp")]
            Self::Acp(config) => &config.provider_name,
        }
    }

    /// Whether the children are asked to a model of this harness.
    pub(crate) fn needs_model(&self) -> bool {
        matches!(self, Self::InProcess(..))
    }

    /// Offers it for as long as `scope`. No process is started.
    pub(crate) fn mount(&self, scope: &Scope, means: &Means) -> Result<(), MountError> {
        match self {
            Self::InProcess(origin, config) => {
                let deps = dsh_subagent_inprocess::Deps {
                    subagents: means.subagents.clone(),
                    agents: Arc::clone(&means.agents),
                    tools: means.tools.clone(),
                    tasks: means.tasks.clone(),
                };
                dsh_subagent_inprocess::install(scope, deps, *origin, config)?;
            }
            #[cfg(feature = "codex")]
            Self::Codex(config) => {
                let deps = dsh_subagent_codex::Deps {
                    subagents: means.subagents.clone(),
                    launcher: means.launcher.clone(),
                    ambient: means.ambient.clone(),
                };
                dsh_subagent_codex::install(scope, deps, config.clone())?;
            }
            #[cfg(feature = "claude-code")]
            Self::ClaudeCode(config) => {
                let deps = dsh_subagent_claude_code::Deps {
                    subagents: means.subagents.clone(),
                    launcher: means.launcher.clone(),
                    ambient: means.ambient.clone(),
                };
                dsh_subagent_claude_code::install(scope, deps, config.clone())?;
            }
            #[cfg(feature = "acp")]
            Self::Acp(config) => {
                let deps = dsh_subagent_acp::Deps {
                    subagents: means.subagents.clone(),
                    launcher: means.launcher.clone(),
                    ambient: means.ambient.clone(),
                };
                dsh_subagent_acp::install(scope, deps, config.clone())?;
            }
        }
        Ok(())
    }
}

#[cfg(not(all(feature = "codex", feature = "claude-code", feature = "acp")))]
fn without(feature: &str) -> String {
    format!("built without feature {feature}")
}

/// What can be checked before anything is made.
trait Checked: DeserializeOwned {
    fn problems(&self) -> Vec<String>;
}

impl Checked for InProcessConfig {
    fn problems(&self) -> Vec<String> {
        match self.provider_name.as_deref() {
            Some("") => vec!["provider_name must not be empty".to_owned()],
            Some(_) | None => Vec::new(),
        }
    }
}

#[cfg(feature = "codex")]
impl Checked for dsh_subagent_codex::CodexConfig {
    fn problems(&self) -> Vec<String> {
        self.validate().map_or_else(|wrong| wrong.problems().to_vec(), |()| Vec::new())
    }
}

#[cfg(feature = "claude-code")]
impl Checked for dsh_subagent_claude_code::ClaudeCodeConfig {
    fn problems(&self) -> Vec<String> {
        self.validate().map_or_else(|wrong| wrong.problems().to_vec(), |()| Vec::new())
    }
}

#[cfg(feature = "acp")]
impl Checked for dsh_subagent_acp::AcpConfig {
    fn problems(&self) -> Vec<String> {
        let wrong = self.validate().err();
        wrong
            .iter()
            .flat_map(|wrong| wrong.0.iter().map(ToString::to_string))
            .collect()
    }
}

fn checked<T: Checked>(place: &str, table: Table, faults: &mut Vec<Fault>) -> Option<T> {
    let config: T = decode::table(place, table, faults)?;
    let problems = config.problems().into_iter();
    faults.extend(problems.map(|problem| Fault::new(place, problem)));
    Some(config)
}
