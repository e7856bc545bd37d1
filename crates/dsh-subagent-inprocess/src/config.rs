//! What a deployment can set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a child begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nothing.
    Spawn,
    /// The turns that its parent had completed.
    Fork,
}

/// What a deployment can set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct InProcessConfig {
    /// The name of the provider; without it `spawn` or `fork`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_name: Option<String>,
}

/// Why the provider could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Its name is empty.
    #[error("provider_name must not be empty")]
    NoName,
    /// It could not be registered.
    #[error(transparent)]
    Register(#[from] dsh_subagent::RegisterError),
}

impl Origin {
    /// The name that its provider has without another one.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Fork => "fork",
        }
    }
}

impl InProcessConfig {
    /// Checks the name.
    ///
    /// # Errors
    ///
    /// [`InstallError::NoName`].
    pub fn validate(&self) -> Result<(), InstallError> {
        match self.provider_name.as_deref() {
            Some("") => Err(InstallError::NoName),
            Some(_) | None => Ok(()),
        }
    }

    /// The name of the provider.
    pub fn provider_name(&self, origin: Origin) -> &str {
        self.provider_name.as_deref().unwrap_or(origin.as_str())
    }
}
