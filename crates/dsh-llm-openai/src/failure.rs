//! Failures, classified, and told without the key.

use std::fmt::Display;
use std::time::{Duration, SystemTime};

use dsh_llm::{ModelError, Retry};
use hyper::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::http::StatusCode;
use serde_json::Value;

use crate::Secret;
use crate::connect::chain;
use crate::wire::is_blank;

/// The most characters of what a provider says.
const MAX_TOLD: usize = 500;

/// Makes errors that name the provider and hide the key.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    host: String,
    key: Option<Secret>,
}

impl Reporter {
    pub(crate) fn new(host: String, key: Option<Secret>) -> Self {
        Self { host, key }
    }

    /// A failure that may be over soon.
    pub(crate) fn passing(&self, code: &str, what: impl Display) -> ModelError {
        ModelError::passing(code, self.tell(&what.to_string()))
    }

    /// A failure that will not go away by itself.
    pub(crate) fn lasting(&self, code: &str, what: impl Display) -> ModelError {
        ModelError::lasting(code, self.tell(&what.to_string()))
    }

    /// Nothing came for too long.
    pub(crate) fn idle(&self, limit: Duration) -> ModelError {
        self.passing("IDLE_TIMEOUT", format_args!("nothing came for {limit:?}"))
    }

    /// The connection broke, or what came on it is no HTTP.
    pub(crate) fn broken(&self, error: &hyper::Error) -> ModelError {
        let (code, what) = match error.is_parse() {
            true => ("MALFORMED_RESPONSE", "the answer is no HTTP"),
            false => ("STREAM_CLOSED", "the connection was closed"),
        };
        self.passing(code, format_args!("{what}: {}", chain(error)))
    }

    /// The provider answered with a status that is no success.
    pub(crate) fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ModelError {
        let said = what_is_said(body);
        let (code, passing) = classify(status.as_u16(), body);
        let mut what = match status.canonical_reason() {
            Some(reason) => format!("HTTP {} {reason}", status.as_u16()),
            None => format!("HTTP {}", status.as_u16()),
        };
        if let Some(said) = said {
            what = format!("{what}: {said}");
        } else if status.is_redirection() {
            what.push_str(": redirects are not followed, correct the base URL");
        }
        if code == "AUTH" {
            let hint = match self.key {
                Some(_) => " (check the API key)",
                None => " (no API key was sent)",
            };
            what.push_str(hint);
        }
        let mut error = self.lasting(&code, what);
        if passing {
            let after = headers.get(RETRY_AFTER).and_then(retry_after);
            error.retry = Retry::Later { after };
        }
        error
    }

    /// The provider reports a failure within an answer that had begun well.
    pub(crate) fn reported(&self, event: &Value) -> ModelError {
        let body = event.to_string().into_bytes();
        let status = status_in(event).unwrap_or(500);
        let (code, passing) = classify(status, &body);
        let said = what_is_said(&body).unwrap_or_else(|| "no reason given".to_owned());
        let mut error = self.lasting(&code, format_args!("failed while answering: {said}"));
        if passing {
            error.retry = Retry::Later { after: None };
        }
        error
    }

    /// One line of bounded length, without the key and with the provider's name.
    fn tell(&self, what: &str) -> String {
        format!("{}: {}", self.host, self.clean(what))
    }

    /// One line of bounded length, without the key. The key goes first: what is left of a cut key would not be found.
    pub(crate) fn clean(&self, text: &str) -> String {
        let hidden = self.key.as_ref().map(|key| key.hidden_in(text));
        let text = hidden.as_deref().unwrap_or(text);
        let words = text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|word| !word.is_empty());
        let line = words.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(MAX_TOLD) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }

    /// The provider answered with a success that is no stream.
    pub(crate) fn no_stream(&self, kind: &str, body: &[u8]) -> ModelError {
        if let Ok(event) = serde_json::from_slice::<Value>(body)
            && event.get("error").is_some_and(|error| !is_blank(error))
        {
            return self.reported(&event);
        }
        let what = format_args!(
            "answers with {kind} instead of a stream of events: check the base URL and any proxy on the way"
        );
        self.lasting("MALFORMED_RESPONSE", what)
    }

    /// Takes from the end of a text that may have been cut what may be the beginning of the key.
    pub(crate) fn trim_cut_key(&self, text: &mut Vec<u8>) {
        let Some(key) = &self.key else { return };
        let key = key.expose().as_bytes();
        let cut = (1..key.len()).rev().find(|length| {
            let end = text.len().checked_sub(*length);
            end.is_some_and(|end| text[end..].eq_ignore_ascii_case(&key[..*length]))
        });
        text.truncate(text.len() - cut.unwrap_or_default());
    }
}

/// The code for programs, and whether the failure is passing.
fn classify(status: u16, body: &[u8]) -> (String, bool) {
    let (code, passing) = match status {
        400 if is_about_the_context_window(body) => ("CONTEXT_WINDOW_EXCEEDED", false),
        400 => ("INVALID_REQUEST", false),
        401 | 403 => ("AUTH", false),
        408 => ("HTTP_408", true),
        429 => ("RATE_LIMIT", true),
        500..=599 => ("SERVER", true),
        _ => return (format!("HTTP_{status}"), false),
    };
    (code.to_owned(), passing)
}

/// Providers agree on the status only: what remains are the words that they use.
fn is_about_the_context_window(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_ascii_lowercase();
    let phrases = [
        "context_length_exceeded",
        "context length",
        "context window",
        "context size",
        "context_size",
        "prompt is too long",
        "input is too long",
        "too many tokens",
    ];
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// What a body says to people, wherever the provider puts it; of an HTML page, that it is one.
fn what_is_said(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(json) => said_in(&json).unwrap_or_else(|| text.trim().to_owned()),
        Err(_) if text.trim_start().starts_with('<') => "an HTML page, so not the API itself".to_owned(),
        Err(_) => text.trim().to_owned(),
    };
    Some(said).filter(|said| !said.is_empty())
}

fn said_in(json: &Value) -> Option<String> {
    let error = json.get("error").filter(|error| !error.is_null());
    let places = [
        error.and_then(|error| error.get("message")),
        error,
        json.get("message"),
        json.get("detail"),
    ];
    let texts = places.into_iter().flatten().filter_map(Value::as_str);
    texts
        .map(str::trim)
        .find(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The HTTP status that a failure within a stream stands for.
fn status_in(event: &Value) -> Option<u16> {
    let error = event
        .get("error")
        .filter(|error| error.is_object())
        .unwrap_or(event);
    let words = ["code", "type", "status"].map(|name| error.get(name));
    let numbers = words.iter().flatten().filter_map(|value| match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_u64(),
    });
    let number = numbers.filter_map(|number| u16::try_from(number).ok());
    if let Some(status) = number.into_iter().find(|number| (400..600).contains(number)) {
        return Some(status);
    }
    let mut names = words.iter().flatten().filter_map(|value| value.as_str());
    names.find_map(|name| match name {
        _ if name.contains("rate_limit") => Some(429),
        _ if name.contains("authentication") || name.contains("api_key") => Some(401),
        _ if name.contains("permission") => Some(403),
        _ if name.contains("context_length") || name.contains("invalid_request") => Some(400),
        _ => None,
    })
}

/// Seconds, or a date. A date in the past asks for no wait.
fn retry_after(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits are still a wish, which has its bound elsewhere.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests;
