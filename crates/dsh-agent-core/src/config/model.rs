//! `[model]`: who answers, and what a command line says instead.

use dsh_agent_loop::ModelChoice;
use dsh_llm::Sampling;
use dsh_llm_openai::{Flavour, OpenAiConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Fault;

/// `[model]`: the model that answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelTable {
    /// Who is asked.
    pub provider: Provider,
    /// The provider's name of the model; of `scripted`, the file with the script. By default `deepseek-chat` of
    /// `deepseek`; the others have no default.
    pub name: Option<String>,
    /// What comes before `/chat/completions`. By default the provider's own; `compatible` has none.
    pub base_url: Option<String>,
    /// The environment variable with the key. By default the provider's own (`DEEPSEEK_API_KEY`, `OPENAI_API_KEY`), and
    /// that one is sent to the provider's own URL only.
    pub api_key_env: Option<String>,
    /// Sampling temperature. By default the provider's.
    #[schemars(range(min = 0.0))]
    pub temperature: Option<f64>,
    /// The most tokens of one answer. By default the provider's.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// How long making a connection may take, in milliseconds.
    #[schemars(range(min = 1.0))]
    pub connect_timeout_ms: f64,
    /// The longest silence of the provider, in milliseconds.
    #[schemars(range(min = 1.0))]
    pub idle_timeout_ms: f64,
}

/// Who is asked. All but `scripted` are chat-completions endpoints; they differ in what they expect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// DeepSeek.
    #[default]
    Deepseek,
    /// OpenAI.
    Openai,
    /// Any endpoint of that kind.
    Compatible,
    /// Nobody: the answers are in a file. Needs no key and no network.
    Scripted,
}

/// What a command line says instead of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelOverrides {
    /// A model, or `provider:model`.
    pub model: Option<String>,
    /// Where to ask.
    pub base_url: Option<String>,
    /// The variable with the key.
    pub api_key_env: Option<String>,
}

impl ModelTable {
    /// This table with what a command line says instead.
    ///
    /// A key that was configured goes where it was configured to go: another provider, or another URL, takes neither URL
    /// nor key from here.
    #[must_use]
    pub fn overridden(mut self, overrides: ModelOverrides) -> Self {
        let ModelOverrides {
            model,
            base_url,
            api_key_env,
        } = overrides;
        if let Some(model) = model {
            let (provider, name) = named(&model).unwrap_or((self.provider, &model));
            if provider != self.provider {
                self.base_url = None;
                self.api_key_env = None;
            }
            self.provider = provider;
            self.name = Some(name.to_owned());
        }
        if let Some(url) = base_url {
            if self.base_url.as_ref() != Some(&url) {
                self.api_key_env = None;
            }
            self.base_url = Some(url);
        }
        if api_key_env.is_some() {
            self.api_key_env = api_key_env;
        }
        self
    }

    /// The choice that this is, for an agent; without a name, of a model that has none.
    pub fn choice(&self) -> ModelChoice {
        let name = self.name.as_deref().filter(|name| !name.is_empty());
        let name = name.or(self.provider.default_model());
        ModelChoice {
            sampling: Sampling {
                temperature: self.temperature,
                max_tokens: self.max_tokens,
            },
            ..ModelChoice::new(self.provider.as_str(), name.unwrap_or_default())
        }
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (key, text) in [
            ("name", &self.name),
            ("base_url", &self.base_url),
            ("api_key_env", &self.api_key_env),
        ] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                let problem = "must not be empty: leave it out for the default";
                faults.push(Fault::new(&format!("model.{key}"), problem.to_owned()));
            }
        }
        if let Some(temperature) = self.temperature
            && !(temperature.is_finite() && temperature >= 0.0)
        {
            let problem = format!("must be a number, at least 0, is {temperature}");
            faults.push(Fault::new("model.temperature", problem));
        }
        if self.max_tokens == Some(0) {
            faults.push(Fault::new(
                "model.max_tokens",
                "must be at least 1, is 0".to_owned(),
            ));
        }
        for (key, ms) in [
            ("connect_timeout_ms", self.connect_timeout_ms),
            ("idle_timeout_ms", self.idle_timeout_ms),
        ] {
            if !(ms.is_finite() && ms >= 1.0) {
                let problem = format!("must be a number of milliseconds, at least 1, is {ms}");
                faults.push(Fault::new(&format!("model.{key}"), problem));
            }
        }
        faults
    }
}

impl Default for ModelTable {
    fn default() -> Self {
        let OpenAiConfig {
            connect_timeout,
            idle_timeout,
            ..
        } = OpenAiConfig::new(OpenAiConfig::DEEPSEEK);
        Self {
            provider: Provider::default(),
            name: None,
            base_url: None,
            api_key_env: None,
            temperature: None,
            max_tokens: None,
            connect_timeout_ms: connect_timeout.as_secs_f64() * 1000.0,
            idle_timeout_ms: idle_timeout.as_secs_f64() * 1000.0,
        }
    }
}

impl Provider {
    const ALL: [Self; 4] = [Self::Deepseek, Self::Openai, Self::Compatible, Self::Scripted];

    /// Its name in a configuration, and in a log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deepseek => "deepseek",
            Self::Openai => "openai",
            Self::Compatible => "compatible",
            Self::Scripted => "scripted",
        }
    }

    pub(crate) fn own_url(self) -> Option<&'static str> {
        match self {
            Self::Deepseek => Some(OpenAiConfig::DEEPSEEK),
            Self::Openai => Some("https://api.openai.com/v1"),
            Self::Compatible | Self::Scripted => None,
        }
    }

    /// The variable that holds its key; sent to its own URL only.
    pub(crate) fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Deepseek => Some("DEEPSEEK_API_KEY"),
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Compatible | Self::Scripted => None,
        }
    }

    pub(crate) fn flavour(self) -> Flavour {
        match self {
            Self::Deepseek => Flavour::DeepSeek,
            Self::Openai => Flavour::OpenAi,
            Self::Compatible | Self::Scripted => Flavour::Compatible,
        }
    }

    fn default_model(self) -> Option<&'static str> {
        match self {
            Self::Deepseek => Some("deepseek-chat"),
            Self::Openai | Self::Compatible | Self::Scripted => None,
        }
    }
}

/// Provider and model, where a provider is named. The name of a model may hold a colon, too.
fn named(model: &str) -> Option<(Provider, &str)> {
    let (prefix, name) = model.split_once(':')?;
    let provider = Provider::ALL
        .into_iter()
        .find(|provider| provider.as_str() == prefix)?;
    Some((provider, name))
}
