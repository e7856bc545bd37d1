//! Why there is no adapter.

/// Why an [`OpenAiConfig`](crate::OpenAiConfig) makes no adapter. No message holds a key or a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL is of no use.
    #[error("base URL {url:?} {problem}")]
    BaseUrl {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The base URL holds a user name or a password.
    #[error("the base URL holds a user name or a password: give the key as API key instead")]
    CredentialsInUrl,
    /// The key would be readable on the way.
    #[error(
        "refusing to send the API key in clear text to {host}: use https, or allow clear text explicitly"
    )]
    CleartextKey {
        /// Where it would go.
        host: String,
    },
    /// The key cannot be sent.
    #[error("the API key is {problem}")]
    Key {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The user agent cannot be sent.
    #[error("user agent {user_agent:?} is empty or holds a character that no header can carry")]
    UserAgent {
        /// As it was given.
        user_agent: String,
    },
    /// A time that can only run out.
    #[error("{name} must be longer than zero")]
    ZeroTimeout {
        /// Name of the setting.
        name: &'static str,
    },
    /// The environment names a proxy of a kind that is not supported.
    #[error(
        "proxy of scheme {scheme:?} is not supported: name an http:// proxy, or exempt {host} with NO_PROXY"
    )]
    Proxy {
        /// What its URL begins with.
        scheme: String,
        /// Who should be reached through it.
        host: String,
    },
    /// Nobody can be trusted.
    #[error(
        "no trusted certificates found: install the system's CA certificates or name a file with SSL_CERT_FILE"
    )]
    NoRoots,
    /// The TLS library refuses its settings.
    #[error("TLS cannot be set up: {problem}")]
    Tls {
        /// What it says.
        problem: String,
    },
}
