//! `[model]`: who answers, and what a command line says instead.

use dsh_agent_loop::ModelChoice;
use dsh_llm::Sampling;
use dsh_llm_openai::{Flavour, OpenAiConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_TIME_MS, time_fault};
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
    /// Further models of this provider, by its names, that the person at an editor can choose from. A command line that
    /// names another provider or URL leaves them out.
    #[schemars(inner(length(min = 1)))]
    pub choices: Vec<String>,
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
    #[schemars(range(min = 1.0, max = MAX_TIME_MS))]
    pub connect_timeout_ms: f64,
    /// The longest silence of the provider, in milliseconds.
    #[schemars(range(min = 1.0, max = MAX_TIME_MS))]
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

/// Why a command line names no model. Nothing was sent to anybody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// An option has no value.
    #[error("{option} is empty: leave it out for what is configured")]
    Empty {
        /// The option.
        option: &'static str,
    },
    /// A provider is no model.
    #[error("--model {provider} names a provider and no model: write {provider}:NAME")]
    NoModel {
        /// The provider.
        provider: &'static str,
    },
    /// Nobody is called that.
    #[error(
        "unknown provider {prefix:?} in --model {model}: write PROVIDER:NAME with {known}, or give the --base-url of \
         who has a model of that name",
        known = Provider::ALL.map(Provider::as_str).join(", ")
    )]
    UnknownProvider {
        /// What stands where the provider should.
        prefix: String,
        /// The whole of it.
        model: String,
    },
}

impl ModelTable {
    /// This table with what a command line says instead.
    ///
    /// A key that was configured goes where it was configured to go: another provider, or another URL, takes neither URL
    /// nor key from here, nor the choices, which are other people's models.
    ///
    /// What stands before the first colon of a model is a provider. It may be part of the model's own name
    /// (`qwen3:8b`) only where a URL is set, here or on the command line: a misspelt provider sends nothing to another
    /// one. Behind a provider a name may hold colons.
    ///
    /// # Errors
    ///
    /// An [`OverrideError`] when an option is empty, or names a provider that is not known, or a provider alone.
    pub fn overridden(mut self, overrides: ModelOverrides) -> Result<Self, OverrideError> {
        overrides.check()?;
        let ModelOverrides {
            model,
            base_url,
            api_key_env,
        } = overrides;
        if let Some(model) = model {
            let has_url = base_url.is_some() || self.base_url.is_some();
            let (provider, name) = match named(&model)? {
                Named::Model(provider, name) => (provider, name),
                Named::Unprefixed => (self.provider, model.as_str()),
                Named::Colon(_) if has_url => (self.provider, model.as_str()),
                Named::Colon(prefix) => {
                    let prefix = prefix.to_owned();
                    return Err(OverrideError::UnknownProvider { prefix, model });
                }
            };
            if provider != self.provider {
                self.base_url = None;
                self.api_key_env = None;
                self.choices.clear();
            }
            self.provider = provider;
            self.name = Some(name.to_owned());
        }
        if let Some(url) = base_url {
            if self.base_url.as_ref() != Some(&url) {
                self.api_key_env = None;
                self.choices.clear();
            }
            self.base_url = Some(url);
        }
        if api_key_env.is_some() {
            self.api_key_env = api_key_env;
        }
        Ok(self)
    }

    /// The choice that this is, for an agent; without a name, of a model that has none.
    pub fn choice(&self) -> ModelChoice {
        let name = self.name.as_deref().filter(|name| !name.is_empty());
        self.named(name.or(self.provider.default_model()).unwrap_or_default())
    }

    /// The choices besides [`choice`](Self::choice).
    pub fn choices(&self) -> Vec<ModelChoice> {
        self.choices.iter().map(|name| self.named(name)).collect()
    }

    fn named(&self, name: &str) -> ModelChoice {
        ModelChoice {
            sampling: Sampling {
                temperature: self.temperature,
                max_tokens: self.max_tokens,
            },
            ..ModelChoice::new(self.provider.as_str(), name)
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
        if self.choices.iter().any(|name| name.trim().is_empty()) {
            let problem = "must name models, has an empty name".to_owned();
            faults.push(Fault::new("model.choices", problem));
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
            faults.extend(time_fault(&format!("model.{key}"), ms));
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
            choices: Vec::new(),
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

impl ModelOverrides {
    fn check(&self) -> Result<(), OverrideError> {
        for (option, value) in [
            ("--model", &self.model),
            ("--base-url", &self.base_url),
            ("--api-key-env", &self.api_key_env),
        ] {
            if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
                return Err(OverrideError::Empty { option });
            }
        }
        Ok(())
    }
}

/// What a command line calls a model.
enum Named<'a> {
    /// A provider, and what it calls it.
    Model(Provider, &'a str),
    /// A name without a colon.
    Unprefixed,
    /// A name with a colon, and no provider before it but this.
    Colon(&'a str),
}

fn named(model: &str) -> Result<Named<'_>, OverrideError> {
    let find = |name: &str| Provider::ALL.into_iter().find(|known| known.as_str() == name);
    let no_model = |provider: Provider| OverrideError::NoModel {
        provider: provider.as_str(),
    };
    match model.split_once(':') {
        None => match find(model) {
            Some(provider) => Err(no_model(provider)),
            None => Ok(Named::Unprefixed),
        },
        Some((prefix, name)) => match find(prefix) {
            Some(provider) if name.trim().is_empty() => Err(no_model(provider)),
            Some(provider) => Ok(Named::Model(provider, name)),
            None if prefix.trim().is_empty() || name.trim().is_empty() => {
                Err(OverrideError::UnknownProvider {
                    prefix: prefix.to_owned(),
                    model: model.to_owned(),
                })
            }
            None => Ok(Named::Colon(prefix)),
        },
    }
}
