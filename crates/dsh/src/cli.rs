//! The command line: what can be asked for.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use dsh_agent_core::ModelOverrides;

/// Background tasks an agent can trust.
#[derive(Debug, Parser)]
#[command(name = "dsh", version, about)]
pub(crate) struct Cli {
    /// Configuration file (TOML); else $DSH_CONFIG, else $DSH_HOME/config.toml, else the defaults
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) composition: CompositionFlags,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `dsh` does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve bash and the task tools to an MCP client over stdin and stdout
    Mcp,
    /// Serve an agent to an ACP editor over stdin and stdout
    Acp(ModelFlags),
    /// Give an agent something to do in this directory, and print what it says
    Run(RunArgs),
    /// Show one agent at work with background tasks (no key, no network)
    Demo,
    /// Print facts about the configuration
    Config {
        /// Which facts.
        #[command(subcommand)]
        action: ConfigAction,
    },
}

/// Who can be delegated to, and what an agent sees.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompositionFlags {
    /// Who can be delegated to: $DSH_HOME/profiles/NAME.toml; else `default`, which needs no file
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// What an agent sees: standard, code, minimal, or $DSH_HOME/presets/ID.toml; else standard
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) preset: Option<String>,
}

/// What an agent is to do, and how that is shown.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; without it, or with `-`, it is read from stdin
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelFlags,
    /// What stdout holds
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,
    /// Log the session to FILE, which must be new or empty
    #[arg(long, value_name = "FILE")]
    pub(crate) session: Option<PathBuf>,
    /// Go on with the session in the file of --session
    #[arg(long, requires = "session")]
    pub(crate) resume: bool,
    /// How long to wait for background tasks when there is nothing else to do
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) linger: u64,
}

/// Which model answers, where it is not the configured one.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelFlags {
    /// Model, or PROVIDER:NAME (deepseek, openai, compatible); scripted:FILE needs no key. A name with a colon of its
    /// own needs its provider, or a base URL
    #[arg(long)]
    model: Option<String>,
    /// Where the model is asked: what comes before /chat/completions
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Environment variable with the API key; a provider's own is only sent to its own URL
    #[arg(long, value_name = "NAME")]
    api_key_env: Option<String>,
}

/// What stdout holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// What the agent says
    #[default]
    Text,
    /// One JSON object, at the end
    Json,
    /// A JSON object per line, as things happen
    StreamJson,
}

impl From<ModelFlags> for ModelOverrides {
    fn from(flags: ModelFlags) -> Self {
        let ModelFlags {
            model,
            base_url,
            api_key_env,
        } = flags;
        Self {
            model,
            base_url,
            api_key_env,
        }
    }
}

/// What `dsh config` prints.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// The JSON Schema of the configuration file
    Schema,
    /// The configuration in force, as TOML, with where it came from; flags of other commands (--model) are not in it
    Show,
    /// What the host shows a model under this configuration, as Markdown; a preset adds the tools that delegate
    Surface,
    /// Presets: what an agent sees
    Preset {
        /// What to do with them.
        #[command(subcommand)]
        action: PresetAction,
    },
}

/// What `dsh config preset` does.
#[derive(Debug, Subcommand)]
pub(crate) enum PresetAction {
    /// Name those that there are
    List,
    /// Copy one to a new one of your own, and print its file
    Copy {
        /// The one to begin with.
        from: String,
        /// The id of the new one.
        to: String,
    },
}
