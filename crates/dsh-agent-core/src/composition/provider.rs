//! Who a row of a profile mounts.

use std::sync::Arc;
#[cfg(any(feature = "codex", feature = "claude-code"))]
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use dsh_agent::AgentFactory;
use dsh_scope::Scope;
use dsh_subagent::Capabilities;
#[cfg(feature = "acp")]
use dsh_subagent_acp::AcpConfig;
#[cfg(feature = "claude-code")]
use dsh_subagent_claude_code::ClaudeCodeConfig;
#[cfg(feature = "codex")]
use dsh_subagent_codex::CodexConfig;
use dsh_subagent_inprocess::{InProcessConfig, Origin};
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
    Codex(CodexConfig),
    #[cfg(feature = "claude-code")]
    ClaudeCode(ClaudeCodeConfig),
    #[cfg(feature = "acp")]
    Acp(AcpConfig),
}

/// What providers are made with.
pub(crate) struct Means {
    /// What products need, and where everybody is offered.
    pub(crate) products: dsh_subagent_process::Deps,
    pub(crate) agents: Arc<dyn AgentFactory>,
    pub(crate) tools: ToolRegistry,
    pub(crate) tasks: TaskRegistry,
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
            "codex" => return Ok(checked(place, table, faults, CodexConfig::validate).map(Self::Codex)),
            #[cfg(feature = "claude-code")]
            "claude-code" => {
                return Ok(checked(place, table, faults, ClaudeCodeConfig::validate).map(Self::ClaudeCode));
            }
            #[cfg(feature = "acp")]
            "acp" => return Ok(checked(place, table, faults, AcpConfig::validate).map(Self::Acp)),
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
        let validate = |config: &InProcessConfig| config.validate().map_err(|error| [error.to_string()]);
        Ok(checked(place, table, faults, validate).map(|config| Self::InProcess(origin, config)))
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

    /// What tools can ask of it.
    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            Self::InProcess(..) => Capabilities::ALL,
            #[cfg(feature = "codex")]
            Self::Codex(_) => Capabilities::NONE,
            #[cfg(feature = "claude-code")]
            Self::ClaudeCode(_) => Capabilities::NONE,
            #[cfg(feature = "acp")]
            Self::Acp(_) => Capabilities::NONE,
        }
    }

    /// Why its program could not be started, as far as the file system tells.
    pub(crate) fn program_problems(&self) -> Vec<String> {
        match self {
            Self::InProcess(..) => Vec::new(),
            #[cfg(feature = "codex")]
            Self::Codex(config) => unusable(config.find_program()),
            #[cfg(feature = "claude-code")]
            Self::ClaudeCode(config) => unusable(config.find_program()),
            // Its program may be a name that is looked up when it is started.
            #[cfg(feature = "acp")]
            Self::Acp(_) => Vec::new(),
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
                    subagents: means.products.subagents.clone(),
                    agents: Arc::clone(&means.agents),
                    tools: means.tools.clone(),
                    tasks: means.tasks.clone(),
                };
                dsh_subagent_inprocess::install(scope, deps, *origin, config)?;
            }
            #[cfg(feature = "codex")]
            Self::Codex(config) => {
                dsh_subagent_codex::install(scope, means.products.clone(), config.clone())?;
            }
            #[cfg(feature = "claude-code")]
            Self::ClaudeCode(config) => {
                dsh_subagent_claude_code::install(scope, means.products.clone(), config.clone())?;
            }
            #[cfg(feature = "acp")]
            Self::Acp(config) => {
                dsh_subagent_acp::install(scope, means.products.clone(), config.clone())?;
            }
        }
        Ok(())
    }
}

/// Why nothing can be started of what was found.
#[cfg(any(feature = "codex", feature = "claude-code"))]
fn unusable(found: Result<PathBuf, impl Into<Vec<String>>>) -> Vec<String> {
    let program = match found {
        Ok(program) => program,
        Err(wrong) => return wrong.into(),
    };
    let why = match fs::metadata(&program) {
        Ok(file) if !file.is_file() => "it is not a file".to_owned(),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => "it is not executable".to_owned(),
        Ok(_) => return Vec::new(),
        Err(error) => error.to_string(),
    };
    let program = program.display();
    vec![format!(
        "cannot be started: {program}: {why}: name the native program, or set disabled = true"
    )]
}

#[cfg(not(all(feature = "codex", feature = "claude-code", feature = "acp")))]
fn without(feature: &str) -> String {
    format!("built without feature {feature}")
}

/// Reads a configuration, and checks what can be checked before anything is made.
fn checked<T, E>(
    place: &str,
    table: Table,
    faults: &mut Vec<Fault>,
    validate: impl FnOnce(&T) -> Result<(), E>,
) -> Option<T>
where
    T: DeserializeOwned,
    E: Into<Vec<String>>,
{
    let config: T = decode::table(place, table, faults)?;
    if let Err(problems) = validate(&config) {
        let problems: Vec<String> = problems.into();
        faults.extend(problems.into_iter().map(|problem| Fault::new(place, problem)));
    }
    Some(config)
}
