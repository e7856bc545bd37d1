//! Connections: TCP, a proxy where the environment names one, and TLS.

use std::error::Error;
use std::io;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};
use tokio_util::either::Either;
use tower_service::Service;

use crate::ConfigError;
use crate::endpoint::{Endpoint, Transport};

/// A connection to the provider.
pub(crate) type Connection = TokioIo<Either<TcpStream, TlsStream<TcpStream>>>;

/// Makes connections to one endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    endpoint: Arc<Endpoint>,
    route: Route,
    encryption: Encryption,
}

#[derive(Debug, Clone)]
enum Route {
    Direct(HttpConnector),
    /// And the proxy's host and port.
    Proxy(Box<Tunnel<HttpConnector>>, String),
}

#[derive(Clone)]
enum Encryption {
    Plain,
    Tls(TlsConnector, ServerName<'static>),
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// It may work later.
    Passing(String),
    /// The two sides do not understand or do not trust each other.
    Lasting(String),
}

impl Connector {
    /// Reads the trusted certificates and the environment, for `https` only: over `http` nothing goes through a proxy.
    pub(crate) fn new(endpoint: Arc<Endpoint>) -> Result<Self, ConfigError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let (route, encryption) = match endpoint.transport {
            Transport::Plain => (Route::Direct(tcp), Encryption::Plain),
            Transport::Tls => (route(&endpoint, tcp)?, encryption(&endpoint)?),
        };
        Ok(Self {
            endpoint,
            route,
            encryption,
        })
    }

    /// Connects. Dropping the future closes what there is.
    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        let origin = self.endpoint.origin.clone();
        let tcp = match &self.route {
            Route::Direct(tcp) => tcp.clone().call(origin).await.map_err(ConnectError::passing)?,
            Route::Proxy(tunnel, proxy) => {
                let reached = Tunnel::clone(tunnel).call(origin).await;
                let refused = |error| ConnectError::Passing(format!("proxy {proxy}: {}", chain(&error)));
                reached.map_err(refused)?
            }
        };
        let tcp = tcp.into_inner();
        let stream = match &self.encryption {
            Encryption::Plain => Either::Left(tcp),
            Encryption::Tls(tls, name) => {
                let encrypted = tls.connect(name.clone(), tcp).await;
                Either::Right(encrypted.map_err(ConnectError::handshake)?)
            }
        };
        Ok(TokioIo::new(stream))
    }
}

impl ConnectError {
    fn passing(error: impl Error) -> Self {
        Self::Passing(chain(&error))
    }

    /// A certificate does not become valid, nor a server fluent in TLS, by asking again.
    fn handshake(error: io::Error) -> Self {
        let what = format!("TLS: {}", chain(&error));
        match error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
            true => Self::Lasting(what),
            false => Self::Passing(what),
        }
    }
}

impl std::fmt::Debug for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Tls(..) => "Tls",
        })
    }
}

/// An error and its causes, on one line, each said once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Through the proxy that the environment names for this endpoint; never for this machine itself.
fn route(endpoint: &Endpoint, tcp: HttpConnector) -> Result<Route, ConfigError> {
    let matcher = Matcher::from_env();
    let intercept = matcher
        .intercept(&endpoint.origin)
        .filter(|_| !endpoint.is_loopback());
    let Some(proxy) = intercept else {
        return Ok(Route::Direct(tcp));
    };
    let scheme = proxy.uri().scheme_str().unwrap_or_default();
    if scheme != "http" || proxy.raw_auth().is_some() {
        return Err(ConfigError::Proxy {
            scheme: scheme.to_owned(),
            host: endpoint.host.clone(),
        });
    }
    let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
    let tunnel = match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    };
    let (host, port) = (proxy.uri().host(), proxy.uri().port_u16());
    let name = format!("{}:{}", host.unwrap_or_default(), port.unwrap_or(80));
    Ok(Route::Proxy(Box::new(tunnel), name))
}

/// The system's certificates, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name: what a company adds to its
/// machines is trusted here, too.
fn encryption(endpoint: &Endpoint) -> Result<Encryption, ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(%error, "a trusted certificate was not read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(ConfigError::NoRoots);
    }
    let unusable = |problem: &dyn Error| ConfigError::Tls {
        problem: chain(problem),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| unusable(&error))?;
    Ok(Encryption::Tls(TlsConnector::from(Arc::new(config)), name))
}
