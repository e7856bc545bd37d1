//! The tool that delegates work to a subagent.
mod args;
mod background;
mod card;
mod config;
mod error;
mod foreground;
mod held;
mod mirror;
mod service;
mod tool;
mod wording;

pub use config::{AgentOptions, BackgroundMode, ConfigError, MaxDepth, ToolFilterConfig, ToolSubagentConfig};
pub use error::InstallError;
pub use service::{Deps, Handle, install, install_for};
