//! Sends requests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_llm::{ModelAdapter, ModelError, ModelRequest, ModelStream};
use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderValue,
    USER_AGENT,
};
use hyper::http::StatusCode;
use hyper::http::response::Parts;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::connect::{ConnectError, Connector};
use crate::endpoint::{Endpoint, Transport};
use crate::exchange::Exchange;
use crate::failure::Reporter;
use crate::stream::OpenAiStream;
use crate::{CleartextKey, ConfigError, Flavour, OpenAiConfig, Secret, request};

/// The most bytes of a refusal that are read.
const MAX_REFUSAL: usize = 64 << 10;

/// How long the text of a refusal is waited for.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends requests to one chat-completions endpoint, each on a connection of its own. Cloning shares the settings.
#[derive(Debug, Clone)]
pub struct OpenAiAdapter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    endpoint: Arc<Endpoint>,
    connector: Connector,
    flavour: Flavour,
    headers: HeaderMap,
    connect_timeout: Duration,
    idle_timeout: Duration,
    reporter: Reporter,
}

impl OpenAiAdapter {
    /// Checks the settings; for `https` it also reads the system's certificates and `HTTPS_PROXY`, `ALL_PROXY` and
    /// `NO_PROXY`. Nothing is sent.
    ///
    /// # Errors
    ///
    /// A [`ConfigError`] that names the setting and what helps.
    pub fn new(config: OpenAiConfig) -> Result<Self, ConfigError> {
        let endpoint = Arc::new(Endpoint::parse(&config.base_url)?);
        let exposed = endpoint.transport == Transport::Plain && !endpoint.is_loopback();
        if exposed && config.api_key.is_some() && config.cleartext_key == CleartextKey::LoopbackOnly {
            return Err(ConfigError::CleartextKey {
                host: endpoint.host.clone(),
            });
        }
        for (name, time) in [
            ("connect_timeout", config.connect_timeout),
            ("idle_timeout", config.idle_timeout),
        ] {
            if time.is_zero() {
                return Err(ConfigError::ZeroTimeout { name });
            }
        }
        let shared = Shared {
            headers: headers(&config, &endpoint)?,
            connector: Connector::new(Arc::clone(&endpoint))?,
            flavour: config.flavour,
            connect_timeout: config.connect_timeout,
            idle_timeout: config.idle_timeout,
            reporter: Reporter::new(endpoint.authority.clone(), config.api_key),
            endpoint,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }
}

#[async_trait]
impl ModelAdapter for OpenAiAdapter {
    /// As the seam says; a cancelled request gives a stream that is finished as aborted.
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        let shared = &self.shared;
        let answered = tokio::select! {
            biased;
            () = token.cancelled() => None,
            answered = shared.ask(&request) => Some(answered?),
        };
        let Some(answered) = answered else {
            return Ok(Box::new(OpenAiStream::aborted(token)));
        };
        let body = Body::new(shared.reporter.clone(), request.messages.len());
        let reporter = shared.reporter.clone();
        let stream = OpenAiStream::new(answered, body, reporter, shared.idle_timeout, token);
        Ok(Box::new(stream))
    }
}

impl Shared {
    /// Sends a request; returns when the stream begins.
    async fn ask(&self, request: &ModelRequest) -> Result<Exchange, ModelError> {
        let body = request::body(request, self.flavour);
        tracing::debug!(
            host = %self.endpoint.authority,
            model = %request.header.model,
            bytes = body.len(),
            "asking a model"
        );
        let mut message = Request::new(Full::new(Bytes::from(body)));
        *message.method_mut() = hyper::Method::POST;
        *message.uri_mut() = self.endpoint.target.clone().into();
        message.headers_mut().clone_from(&self.headers);

        let connection = match timeout(self.connect_timeout, self.connector.connect()).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(ConnectError::Passing(what))) => return Err(self.unreachable(&what)),
            Ok(Err(ConnectError::Lasting(what))) => {
                let what = format_args!("cannot connect: {what}");
                return Err(self.reporter.lasting("CONNECT", what));
            }
            Err(_) => {
                let limit = self.connect_timeout;
                return Err(self.unreachable(&format!("no connection within {limit:?}")));
            }
        };
        let answered = timeout(self.idle_timeout, Exchange::begin(connection, message)).await;
        let (head, exchange) = answered
            .map_err(|_| self.reporter.idle(self.idle_timeout))?
            .map_err(|error| self.reporter.broken(&error))?;
        tracing::debug!(host = %self.endpoint.authority, status = head.status.as_u16(), "a model answers");
        self.check(head, exchange).await
    }

    /// Lets pass what is a stream of events.
    async fn check(&self, head: Parts, mut exchange: Exchange) -> Result<Exchange, ModelError> {
        if head.status != StatusCode::OK {
            let body = self.refusal(&mut exchange).await;
            return Err(self.reporter.refused(head.status, &head.headers, &body));
        }
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(encoding) =
            header(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            let what = format_args!("the answer is compressed ({encoding}), which was not asked for");
            return Err(self.reporter.lasting("MALFORMED_RESPONSE", what));
        }
        let essence = |kind: &str| {
            kind.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase()
        };
        match header(CONTENT_TYPE).map(essence).as_deref() {
            None | Some("text/event-stream") => Ok(exchange),
            Some(kind) => {
                let body = self.refusal(&mut exchange).await;
                Err(self.reporter.no_stream(kind, &body))
            }
        }
    }

    /// The text of a refusal, as much of it as comes soon and is not the cut beginning of an echoed key.
    async fn refusal(&self, exchange: &mut Exchange) -> Vec<u8> {
        let mut text = Vec::new();
        let whole = timeout(REFUSAL_TIMEOUT.min(self.idle_timeout), async {
            while let Some(Ok(more)) = exchange.data().await {
                text.extend_from_slice(&more);
                if text.len() > MAX_REFUSAL {
                    return;
                }
            }
        });
        let _ = whole.await;
        text.truncate(MAX_REFUSAL);
        self.reporter.trim_cut_key(&mut text);
        text
    }

    fn unreachable(&self, what: &str) -> ModelError {
        self.reporter
            .passing("CONNECT", format_args!("cannot connect: {what}"))
    }
}

fn headers(config: &OpenAiConfig, endpoint: &Endpoint) -> Result<HeaderMap, ConfigError> {
    let agent = Some(&config.user_agent).filter(|agent| !agent.trim().is_empty());
    let agent = agent.and_then(|agent| HeaderValue::from_str(agent).ok());
    let agent = agent.ok_or_else(|| ConfigError::UserAgent {
        user_agent: config.user_agent.clone(),
    })?;
    let host = HeaderValue::from_str(&endpoint.authority).map_err(|_| ConfigError::BaseUrl {
        url: config.base_url.clone(),
        problem: "names a host that no header can carry",
    })?;
    let mut headers = HeaderMap::from_iter([
        (HOST, host),
        (USER_AGENT, agent),
        (ACCEPT, HeaderValue::from_static("text/event-stream")),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CONNECTION, HeaderValue::from_static("close")),
    ]);
    if let Some(key) = &config.api_key {
        headers.insert(AUTHORIZATION, authorization(key)?);
    }
    Ok(headers)
}

fn authorization(key: &Secret) -> Result<HeaderValue, ConfigError> {
    let refuse = |problem| Err(ConfigError::Key { problem });
    if key.expose().is_empty() {
        return refuse("empty");
    }
    if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return refuse("not one word of printable ASCII");
    }
    let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", key.expose())) else {
        return refuse("of no use in a header");
    };
    value.set_sensitive(true);
    Ok(value)
}
