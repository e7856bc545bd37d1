//! Where the configuration comes from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use super::{Config, decode};
use crate::error::ConfigError;

/// Where a configuration comes from, in the order in which these are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The file that the caller named. It must exist.
    Named(PathBuf),
    /// The file that `$DSH_CONFIG` names. It must exist.
    Variable(PathBuf),
    /// `config.toml` in `$DSH_HOME`, or in `~/.dsh` without that variable.
    Home(PathBuf),
    /// No file: the defaults.
    Defaults,
}

impl Config {
    /// Where [`load`](Self::load) takes the configuration from: `explicit`, else `$DSH_CONFIG`, else
    /// `$DSH_HOME/config.toml` if there is one, else the defaults.
    pub fn locate(explicit: Option<&Path>) -> Source {
        locate(explicit, |name| std::env::var_os(name))
    }

    /// Loads the configuration and says where it came from. Commands are told the home directory as `DSH_HOME` unless
    /// the configuration names another.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or everything that is wrong in it.
    pub fn load(explicit: Option<&Path>) -> Result<(Self, Source), ConfigError> {
        let source = Self::locate(explicit);
        let mut config = match source.path() {
            Some(path) => Self::from_file(path)?,
            None => Self::default(),
        };
        if config.tool_bash.dsh_home.is_none() {
            config.tool_bash.dsh_home = Self::default_home();
        }
        Ok((config, source))
    }

    /// The home directory where no configuration names another.
    pub(crate) fn default_home() -> Option<PathBuf> {
        home(|name| std::env::var_os(name))
    }

    /// Reads one configuration file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or everything that is wrong in it.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        decode::decode(&text).map_err(|faults| ConfigError::Faults {
            origin: path.display().to_string(),
            faults,
        })
    }
}

impl Source {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Named(path) | Self::Variable(path) | Self::Home(path) => Some(path),
            Self::Defaults => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(path) | Self::Home(path) => path.display().fmt(f),
            Self::Variable(path) => write!(f, "{} (from $DSH_CONFIG)", path.display()),
            Self::Defaults => f.write_str("defaults (no configuration file)"),
        }
    }
}

fn locate(explicit: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Source {
    if let Some(path) = explicit {
        return Source::Named(path.to_owned());
    }
    if let Some(path) = set(variable("DSH_CONFIG")) {
        return Source::Variable(path);
    }
    let Some(path) = home(variable).map(|home| home.join("config.toml")) else {
        return Source::Defaults;
    };
    match fs::metadata(&path) {
        // What is there but cannot be looked at is reported by the attempt to read it.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Source::Defaults
        }
        Ok(_) | Err(_) => Source::Home(path),
    }
}

fn home(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    set(variable("DSH_HOME")).or_else(|| Some(set(variable("HOME"))?.join(".dsh")))
}

/// An empty variable counts as unset.
fn set(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests;
