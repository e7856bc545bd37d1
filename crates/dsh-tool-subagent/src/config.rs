//! What a deployment can choose about one delegation tool.

use dsh_agent::ModelRoute;
use dsh_subagent::{Capabilities, DepthError, MAX_DEPTH, ToolFilter, check_max_depth};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

mod depth;

pub use depth::MaxDepth;

/// How one tool delegates. Every key but the provider may be left out; what is left out is not asked of the provider,
/// except for the limit of depth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSubagentConfig {
    /// The name of the provider that runs the children.
    pub provider: String,
    /// What the model calls the tool. No other tool of the agent may have this name.
    #[serde(default = "tool_name")]
    pub tool_name: String,
    /// Whether a child can run in the background. Off hides the argument and refuses it.
    #[serde(default = "enabled")]
    pub enable_run_in_background: bool,
    /// What a child in the background is.
    #[serde(default)]
    pub background_mode: BackgroundMode,
    /// Which model answers, where it is not the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_options: Option<AgentOptions>,
    /// Takes the place of the deployment's persona in the prompt of the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Which tools the child has.
    #[serde(
        default,
        deserialize_with = "filter_table",
        skip_serializing_if = "Option::is_none"
    )]
    pub tool_filter: Option<ToolFilterConfig>,
    /// How many agents may stand above a child.
    #[serde(default)]
    pub max_depth: MaxDepth,
}

/// What a child in the background is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundMode {
    /// One task with one answer, which the control tools read and stop.
    #[default]
    OneShot,
    /// A conversation that goes on. No provider has it: it is refused.
    Continuable,
}

/// Which model answers. What is left out is the parent's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentOptions {
    /// Under which name its adapter is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's name of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How long an answer may be, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// Which tools a child has. A list that is left out restricts nothing; an empty `allow` leaves none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilterConfig {
    /// Only these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// None of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
}

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.join("\n"))]
pub struct ConfigError {
    problems: Vec<String>,
}

impl ToolSubagentConfig {
    /// A tool `subagent` that delegates to this provider.
    pub fn new(provider: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            tool_name: tool_name(),
            enable_run_in_background: enabled(),
            background_mode: BackgroundMode::default(),
            agent_options: None,
            persona: None,
            tool_filter: None,
            max_depth: MaxDepth::default(),
        }
    }

    /// Checks what the types cannot, and reports everything that is wrong.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] with one line per problem, each naming its key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        for (key, name) in [("provider", &self.provider), ("tool_name", &self.tool_name)] {
            if name.trim().is_empty() {
                problems.push(format!("tool-subagent: {key} must be a non-empty string"));
            }
        }
        if !self.tool_name.trim().is_empty() && !is_tool_name(&self.tool_name) {
            problems.push(format!(
                "tool-subagent: tool_name {:?} is none that models can call: letters, digits, `_` and `-`, at most 64",
                self.tool_name
            ));
        }
        match self.background_mode {
            BackgroundMode::OneShot => {}
            BackgroundMode::Continuable => problems.push(format!(
                "tool-subagent: provider \"{}\" does not support `background_mode: continuable`",
                self.provider
            )),
        }
        if let Some(ToolFilterConfig {
            allow: None,
            deny: None,
        }) = self.tool_filter
        {
            problems.push(
                "tool-subagent: `tool_filter` is configured but names neither `allow` nor `deny` — remove the key or \
                 fill the filter"
                    .to_owned(),
            );
        }
        if let MaxDepth::Limit(max) = self.max_depth
            && let Err(error) = check_max_depth(max)
        {
            problems.push(error.to_string());
        }
        ConfigError::unless_empty(problems)
    }

    /// Everything that every request would ask of a provider that cannot do it.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] with one line per thing.
    pub fn suits(&self, can: Capabilities) -> Result<(), ConfigError> {
        let provider = &self.provider;
        let mut problems: Vec<String> = self.depth_misfit(can).into_iter().collect();
        let others = [
            (
                "tool_filter",
                self.tool_filter.is_some(),
                can.tool_filter,
                "toolFilter",
            ),
            ("persona", self.persona.is_some(), can.persona, "persona"),
        ];
        for (key, asked, can, capability) in others {
            if asked && !can {
                problems.push(format!(
                    "tool-subagent: provider \"{provider}\" does not support {key} (no {capability} capability) — remove the key"
                ));
            }
        }
        ConfigError::unless_empty(problems)
    }

    /// As [`suits`](Self::suits), for what keeps the tool from being mounted: a limit that nobody would keep. What else a
    /// provider cannot do, the seam refuses call by call.
    pub(crate) fn may_mount(&self, can: Capabilities) -> Result<(), ConfigError> {
        ConfigError::unless_empty(self.depth_misfit(can).into_iter().collect())
    }

    fn depth_misfit(&self, can: Capabilities) -> Option<String> {
        match self.max_depth {
            MaxDepth::Limit(_) if !can.depth_limit => Some(format!(
                "tool-subagent: provider \"{}\" cannot enforce max_depth (no depthLimit capability) — set max_depth: \
                 'provider-managed' to leave the recursion budget to the provider",
                self.provider
            )),
            MaxDepth::Limit(_) | MaxDepth::ProviderManaged => None,
        }
    }

    pub(crate) fn model(&self) -> Option<ModelRoute> {
        let AgentOptions {
            provider,
            model,
            max_tokens,
        } = self.agent_options.clone()?;
        Some(ModelRoute {
            provider,
            model,
            max_tokens,
        })
    }

    pub(crate) fn filter(&self) -> Option<ToolFilter> {
        let ToolFilterConfig { allow, deny } = self.tool_filter.clone()?;
        Some(ToolFilter { allow, deny })
    }
}

impl ConfigError {
    fn unless_empty(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Self { problems })
        }
    }

    /// Each problem, as one line.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

/// A filter is a table: serde takes a list for one, and tells what is wrong with the first item.
fn filter_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ToolFilterConfig>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Object(table) => serde_json::from_value(table.into())
            .map(Some)
            .map_err(D::Error::custom),
        _ => Err(D::Error::custom(
            "must be a table with `allow` or `deny`, each a list of tools",
        )),
    }
}

fn tool_name() -> String {
    "subagent".to_owned()
}

fn enabled() -> bool {
    true
}

/// What the model APIs in use take as the name of a tool.
fn is_tool_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.len() <= 64 && name.chars().all(good)
}
