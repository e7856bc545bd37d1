//! What the server sees, and what is refused before it sees anything.

use std::time::Duration;

use dsh_llm_openai::{CleartextKey, ConfigError, OpenAiAdapter, OpenAiConfig, Secret};

use super::server::{STREAM, Server, stop};
use super::{KEY, ask, config};

/// The lines of the head, in lower case, and the body.
async fn seen(config: impl FnOnce(&str) -> OpenAiConfig) -> (Vec<String>, serde_json::Value) {
    let server = Server::says(format!("{STREAM}{}", stop()));
    ask(config(&server.url())).await.unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    let host = format!("host: {}", server.address);
    assert!(head.contains(&host), "{head}");
    let lines = head.lines().map(str::to_owned).collect();
    (lines, serde_json::from_str(body).unwrap())
}

#[tokio::test]
async fn a_request_is_what_the_interface_asks_for() {
    let (head, body) = seen(config).await;
    assert_eq!(head[0], "POST /v1/chat/completions HTTP/1.1");
    let agent = concat!("user-agent: dsh/", env!("CARGO_PKG_VERSION"));
    for line in [
        agent,
        "content-type: application/json",
        "accept: text/event-stream",
        &format!("authorization: Bearer {KEY}"),
    ] {
        assert!(head.iter().any(|seen| seen == line), "{line} in {head:?}");
    }
    assert!(
        !head.iter().any(|line| line.starts_with("accept-encoding")),
        "{head:?}"
    );
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body["messages"][0]["content"], "hi");
    assert_eq!(body.get("tools"), None);
}

#[tokio::test]
async fn without_a_key_there_is_no_authorization() {
    let (head, _) = seen(|url| OpenAiConfig::new(url)).await;
    assert!(
        !head.iter().any(|line| line.starts_with("authorization")),
        "{head:?}"
    );
}

fn refusal(config: OpenAiConfig) -> ConfigError {
    OpenAiAdapter::new(config).unwrap_err()
}

#[test]
fn a_key_does_not_leave_the_machine_in_clear_text() {
    let host = "models.example.com".to_owned();
    let url = "http://models.example.com/v1";
    assert_eq!(refusal(config(url)), ConfigError::CleartextKey { host });
    let allowed = OpenAiConfig {
        cleartext_key: CleartextKey::Anywhere,
        ..config(url)
    };
    assert!(OpenAiAdapter::new(allowed).is_ok());
    assert!(
        OpenAiAdapter::new(OpenAiConfig::new(url)).is_ok(),
        "without a key there is none to lose"
    );
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let with_key = |key: &str| OpenAiConfig {
        api_key: Some(Secret::new(key)),
        ..config("http://localhost")
    };
    for key in ["", " \n", "two words", "line\nbreak", "schlüssel"] {
        let error = refusal(with_key(key));
        assert!(matches!(error, ConfigError::Key { .. }), "{error}");
        assert!(
            key.trim().is_empty() || !error.to_string().contains(key),
            "{error}"
        );
    }
    assert!(OpenAiAdapter::new(with_key("with-line-end\n")).is_ok());
    for agent in ["", " ", "a\nb"] {
        let error = refusal(OpenAiConfig {
            user_agent: agent.to_owned(),
            ..config("http://localhost")
        });
        assert!(matches!(error, ConfigError::UserAgent { .. }), "{error}");
    }
    for (connect, idle) in [(0, 1), (1, 0)] {
        let error = refusal(OpenAiConfig {
            connect_timeout: Duration::from_secs(connect),
            idle_timeout: Duration::from_secs(idle),
            ..config("http://localhost")
        });
        assert!(matches!(error, ConfigError::ZeroTimeout { .. }), "{error}");
    }
    assert!(matches!(
        refusal(config("localhost")),
        ConfigError::BaseUrl { .. }
    ));
}
