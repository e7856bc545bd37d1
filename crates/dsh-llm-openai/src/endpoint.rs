//! The base URL, taken apart.

use std::net::IpAddr;

use hyper::Uri;
use hyper::http::uri::{PathAndQuery, Scheme};

use crate::ConfigError;

const METHOD_PATH: &str = "/chat/completions";

/// Where requests go.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// Scheme and authority.
    pub(crate) origin: Uri,
    /// Path of the request.
    pub(crate) target: PathAndQuery,
    /// Name or address, without brackets.
    pub(crate) host: String,
    /// Host and port as they were given.
    pub(crate) authority: String,
    /// Whether the connection is encrypted.
    pub(crate) transport: Transport,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

impl Endpoint {
    pub(crate) fn parse(base_url: &str) -> Result<Self, ConfigError> {
        let text = base_url.trim();
        if holds_credentials(text) {
            return Err(ConfigError::CredentialsInUrl);
        }
        let refuse = |problem| ConfigError::BaseUrl {
            url: base_url.to_owned(),
            problem,
        };
        if text.contains(['?', '#']) {
            return Err(refuse("must have no query and no fragment"));
        }
        let base: Uri = text.parse().map_err(|_| refuse("is no URL"))?;
        let transport = match base.scheme_str() {
            Some("http") => Transport::Plain,
            Some("https") => Transport::Tls,
            Some(_) => return Err(refuse("must begin with https:// or http://")),
            None => return Err(refuse("must be absolute: begin it with https:// or http://")),
        };
        let path = base.path().trim_end_matches('/');
        if path.ends_with(METHOD_PATH) {
            return Err(refuse("must end before /chat/completions, which is added to it"));
        }
        let no_host = || refuse("names no host");
        let authority = base.authority().filter(|authority| !authority.host().is_empty());
        let authority = authority.ok_or_else(no_host)?.clone();
        // What the library takes for a port may be out of range, and then counts as none.
        let port = authority
            .as_str()
            .strip_prefix(authority.host())
            .unwrap_or_default();
        let port = port.strip_prefix(':').map(str::parse::<u16>);
        if port.is_some_and(|port| port.is_err() || port == Ok(0)) {
            return Err(refuse("has no usable port"));
        }
        let target = format!("{path}{METHOD_PATH}");
        let target = PathAndQuery::try_from(target).map_err(|_| refuse("has no usable path"))?;
        let scheme = match transport {
            Transport::Plain => Scheme::HTTP,
            Transport::Tls => Scheme::HTTPS,
        };
        let origin = Uri::builder()
            .scheme(scheme)
            .authority(authority.clone())
            .path_and_query("/");
        Ok(Self {
            origin: origin.build().map_err(|_| refuse("is no URL"))?,
            target,
            host: authority
                .host()
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned(),
            authority: authority.as_str().to_owned(),
            transport,
        })
    }

    /// Whether requests stay on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        address.map_or_else(
            |_| self.host.eq_ignore_ascii_case("localhost"),
            |address| address.to_canonical().is_loopback(),
        )
    }
}

fn holds_credentials(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}

#[cfg(test)]
mod tests;
