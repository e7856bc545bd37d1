//! From the configuration to somebody who answers.

use std::ffi::OsString;
use std::sync::Arc;

use dsh_llm::{ModelAdapter, ModelRegistry};
use dsh_llm_openai::{OpenAiAdapter, OpenAiConfig, Secret};
use dsh_llm_scripted::{ScriptError, ScriptMisfit, ScriptedModels};

use crate::config::{ModelTable, Provider, time};

/// Who answers, made of a configuration.
#[derive(Debug, Clone)]
pub struct Models {
    registry: ModelRegistry,
    scripts: ScriptedModels,
}

/// Why nobody answers. Nothing was sent to anybody.
#[derive(Debug, thiserror::Error)]
pub enum ModelsError {
    /// The provider has no default model.
    #[error("provider {provider} has no default model: set model.name, or give --model")]
    NoName {
        /// The provider.
        provider: &'static str,
    },
    /// The provider has no URL of its own.
    #[error("provider {provider} has no URL of its own: set model.base_url, or give --base-url")]
    NoUrl {
        /// The provider.
        provider: &'static str,
    },
    /// There is no key where one is needed.
    #[error(
        "no API key for {url}: set the environment variable {variable}, or name another one with --api-key-env"
    )]
    NoKey {
        /// Where it would go.
        url: String,
        /// What should hold it.
        variable: String,
    },
    /// The configured endpoint cannot be used.
    #[error(transparent)]
    Endpoint(#[from] dsh_llm_openai::ConfigError),
    /// The script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl Models {
    /// Makes whoever `table` names ready to be asked. `variable` looks up the environment.
    ///
    /// # Errors
    ///
    /// A [`ModelsError`] when that one could not be asked: no name, no URL, no key, an unusable script.
    pub fn connect(
        table: &ModelTable,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, ModelsError> {
        let mut registry = ModelRegistry::new();
        let scripts = ScriptedModels::new();
        let name = table.choice().model;
        let provider = table.provider.as_str();
        if name.is_empty() {
            return Err(ModelsError::NoName { provider });
        }
        let adapter: Arc<dyn ModelAdapter> = match table.provider {
            Provider::Scripted => {
                scripts.load(&name)?;
                Arc::new(scripts.clone())
            }
            Provider::Deepseek | Provider::Openai | Provider::Compatible => {
                Arc::new(OpenAiAdapter::new(endpoint(table, variable)?)?)
            }
        };
        // The first one: its name cannot be taken.
        let _ = registry.register(provider, adapter);
        Ok(Self { registry, scripts })
    }

    /// The adapters, for [`Parts`](crate::Parts).
    pub fn registry(&self) -> ModelRegistry {
        self.registry.clone()
    }

    /// Whether every script fits the requests that were made; see [`ScriptedModels::finish`].
    ///
    /// # Errors
    ///
    /// What does not fit.
    pub fn finish(&self) -> Result<(), Vec<ScriptMisfit>> {
        self.scripts.finish()
    }
}

fn endpoint(
    table: &ModelTable,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<OpenAiConfig, ModelsError> {
    let provider = table.provider;
    let url = table.base_url.as_deref().or(provider.own_url());
    let url = url.ok_or(ModelsError::NoUrl {
        provider: provider.as_str(),
    })?;
    let config = OpenAiConfig {
        flavour: provider.flavour(),
        connect_timeout: time(table.connect_timeout_ms),
        idle_timeout: time(table.idle_timeout_ms),
        ..OpenAiConfig::new(url)
    };
    let own = provider.key_variable().filter(|_| is_own(provider, url));
    let Some(name) = table.api_key_env.as_deref().or(own) else {
        return Ok(config);
    };
    let key = variable(name).and_then(|key| key.into_string().ok());
    let key = key.filter(|key| !key.trim().is_empty());
    let key = key.ok_or_else(|| ModelsError::NoKey {
        url: url.to_owned(),
        variable: name.to_owned(),
    })?;
    Ok(OpenAiConfig {
        api_key: Some(Secret::new(key)),
        ..config
    })
}

/// Whether a URL is at the provider's own place. A spelling that is not recognised gets no key.
fn is_own(provider: Provider, url: &str) -> bool {
    let Some(own) = provider.own_url() else {
        return false;
    };
    let origin = own.strip_suffix("/v1").unwrap_or(own);
    url.trim()
        .strip_prefix(origin)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
