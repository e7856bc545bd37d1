//! Where requests go, and how.

use std::time::Duration;

use crate::Secret;

/// Where requests go, and how. Checked by [`OpenAiAdapter::new`](crate::OpenAiAdapter::new).
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// What comes before `/chat/completions`: an absolute `http` or `https` URL without query, user name or password.
    pub base_url: String,
    /// Sent as `Authorization: Bearer …` to the base URL and to nobody else; `None` sends no such header.
    pub api_key: Option<Secret>,
    /// What the provider expects where providers differ.
    pub flavour: Flavour,
    /// Where the key may go without encryption.
    pub cleartext_key: CleartextKey,
    /// The longest time for a connection to be made: name, TCP, proxy and TLS together.
    pub connect_timeout: Duration,
    /// The longest silence: between the request and the head of the answer, and then between bytes.
    pub idle_timeout: Duration,
    /// The `User-Agent` header.
    pub user_agent: String,
}

/// What a provider expects where providers differ. Answers are read in the same way for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Reasoning goes back with the turn it belongs to; a turn with tool calls must carry it, even when it is empty.
    DeepSeek,
    /// Reasoning is not sent; the limit of tokens is called `max_completion_tokens`.
    OpenAi,
    /// Reasoning is not sent; the limit of tokens is called `max_tokens`.
    Compatible,
}

/// Where a key may go over plain `http`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CleartextKey {
    /// Only to this machine.
    LoopbackOnly,
    /// To anybody. Everyone on the way can read it.
    Anywhere,
}

impl OpenAiConfig {
    /// DeepSeek's own endpoint.
    pub const DEEPSEEK: &str = "https://api.deepseek.com";

    /// DeepSeek with this key.
    pub fn deepseek(api_key: Secret) -> Self {
        Self {
            api_key: Some(api_key),
            flavour: Flavour::DeepSeek,
            ..Self::new(Self::DEEPSEEK)
        }
    }

    /// Some compatible endpoint, without a key. 30 s to connect, 5 min of silence.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
            flavour: Flavour::Compatible,
            cleartext_key: CleartextKey::LoopbackOnly,
            connect_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            user_agent: concat!("dsh/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
