//! The environment a command gets.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use dsh_bash::BashSpec;

use crate::LocalBashConfig;
use crate::credentials::{
    holds_credential_header, holds_credential_parameter, holds_credential_url, holds_password_field,
    is_credential_name,
};

/// What makes programs print plain text and never wait for somebody at a terminal.
const OVERRIDES: [(&str, &str); 5] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// What changes how every bash starts: a file that is run first, and options that are switched on. A start-up file
/// could also bring back whatever was scrubbed.
const SHELL_START: [&str; 3] = ["BASH_ENV", "SHELLOPTS", "BASHOPTS"];

impl LocalBashConfig {
    /// What is left of this program's environment without credentials and without what only the harness sets: what a
    /// command gets under this configuration, and what any other child should get.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        scrubbed(std::env::vars_os(), self)
    }
}

/// What is left of `ambient` after the scrub. The same for every command.
pub(crate) fn scrubbed(
    ambient: impl IntoIterator<Item = (OsString, OsString)>,
    config: &LocalBashConfig,
) -> Vec<(OsString, OsString)> {
    let is_in = |names: &[String], name: &OsStr| names.iter().any(|listed| *name == **listed);
    let kept = ambient.into_iter().filter(|(name, value)| {
        // A name that some parent began with `=` is one that no process can be given.
        let passable = !name.as_encoded_bytes().contains(&b'=');
        passable
            && !is_managed(name)
            && !is_in(&config.deny_env, name)
            && (is_in(&config.allow_env, name) || !is_scrubbed(name, value))
    });
    kept.collect()
}

/// Builds the complete environment: the scrubbed one, the overrides, the spec's ordinary variables, its managed ones;
/// later ones win.
pub(crate) fn child_env(scrubbed: &[(OsString, OsString)], spec: &BashSpec) -> BTreeMap<OsString, OsString> {
    let overrides = OVERRIDES.iter().map(|(name, value)| (name.into(), value.into()));
    let own = spec
        .env
        .iter()
        .chain(&spec.dsh_env)
        .map(|(name, value)| (name.into(), value.into()));
    scrubbed.iter().cloned().chain(overrides).chain(own).collect()
}

/// Whether only the harness sets a variable of this name.
pub(crate) fn is_managed(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() >= 4 && name[..4].eq_ignore_ascii_case(b"DSH_")
}

fn is_scrubbed(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
    // A function is text of a program, which talks of passwords without having one.
    let is_function = name.starts_with(b"BASH_FUNC_");
    SHELL_START
        .iter()
        .any(|start| name.eq_ignore_ascii_case(start.as_bytes()))
        || is_credential_name(name)
        || holds_credential_url(value)
        || (!is_function
            && (holds_password_field(value)
                || holds_credential_parameter(value)
                || holds_credential_header(value)))
}

#[cfg(test)]
mod tests;
