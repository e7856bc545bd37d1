//! The command line: what can be asked for.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Background tasks an agent can trust.
#[derive(Debug, Parser)]
#[command(name = "dsh", version, about)]
pub(crate) struct Cli {
    /// Configuration file (TOML); else $DSH_CONFIG, else $DSH_HOME/config.toml, else the defaults
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `dsh` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve bash and the task tools to an MCP client over stdin and stdout
    Mcp,
    /// Show one agent at work with background tasks (no key, no network)
    Demo,
    /// Print facts about the configuration
    Config {
        /// Which facts.
        #[command(subcommand)]
        action: ConfigAction,
    },
}

/// What `dsh config` prints.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// The JSON Schema of the configuration file
    Schema,
    /// The configuration in force, as TOML, with where it came from
    Show,
    /// Everything the model is shown under this configuration, as Markdown
    Surface,
}
