//! The environment a command gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use dsh_bash::BashSpec;

use crate::LocalBashConfig;

/// What makes programs print plain text and never wait for somebody at a terminal.
const OVERRIDES: [(&str, &str); 5] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Parts of a name that mark its value as a credential, in any case.
const CREDENTIAL_WORDS: [&str; 6] = ["KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// What changes how every bash starts: a file that is run first, and options that are switched on. A start-up file
/// could also bring back whatever was scrubbed.
const SHELL_START: [&str; 3] = ["BASH_ENV", "SHELLOPTS", "BASHOPTS"];

/// Builds the complete environment: what is left of `ambient` after the scrub, the overrides, the spec's ordinary
/// variables, its managed ones; later ones win.
pub(crate) fn child_env(
    ambient: impl IntoIterator<Item = (OsString, OsString)>,
    config: &LocalBashConfig,
    spec: &BashSpec,
) -> BTreeMap<OsString, OsString> {
    let is_in = |names: &[String], name: &OsStr| names.iter().any(|listed| *name == **listed);
    let kept = ambient.into_iter().filter(|(name, value)| {
        // A name that some parent began with `=` is one that no process can be given.
        let passable = !name.as_encoded_bytes().contains(&b'=');
        passable
            && !is_managed(name)
            && !is_in(&config.deny_env, name)
            && (is_in(&config.allow_env, name) || !is_scrubbed(name, value))
    });
    let overrides = OVERRIDES.iter().map(|(name, value)| (name.into(), value.into()));
    let own = spec
        .env
        .iter()
        .chain(&spec.dsh_env)
        .map(|(name, value)| (name.into(), value.into()));
    kept.chain(overrides).chain(own).collect()
}

/// Whether only the harness sets a variable of this name.
pub(crate) fn is_managed(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() >= 4 && name[..4].eq_ignore_ascii_case(b"DSH_")
}

fn is_scrubbed(name: &OsStr, value: &OsStr) -> bool {
    let name = name.as_encoded_bytes().to_ascii_uppercase();
    SHELL_START.iter().any(|start| name == start.as_bytes())
        || CREDENTIAL_WORDS
            .iter()
            .any(|word| contains(&name, word.as_bytes()))
        || holds_credential_url(value.as_encoded_bytes())
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// Whether any URL in `value` carries a password, or (for http, where it can only be a credential) a user name.
fn holds_credential_url(value: &[u8]) -> bool {
    let mut rest = value;
    while let Some(at) = rest.windows(3).position(|window| window == b"://") {
        let scheme = &rest[..at];
        rest = &rest[at + 3..];
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'') || byte.is_ascii_whitespace())
            .unwrap_or(rest.len());
        let Some(userinfo) = rest[..end]
            .iter()
            .rposition(|byte| *byte == b'@')
            .map(|at| &rest[..at])
        else {
            continue;
        };
        let password = userinfo
            .iter()
            .position(|byte| *byte == b':')
            .map(|at| &userinfo[at + 1..]);
        let is_web = ends_with(scheme, b"http") || ends_with(scheme, b"https");
        if password.is_some_and(|password| !password.is_empty()) || (is_web && !userinfo.is_empty()) {
            return true;
        }
    }
    false
}

fn ends_with(text: &[u8], end: &[u8]) -> bool {
    text.len() >= end.len() && text[text.len() - end.len()..].eq_ignore_ascii_case(end)
}

#[cfg(test)]
mod tests;
