//! The `dsh` binary: background tasks an agent can trust, on the command line.
//!
//! | command | what it does |
//! |---|---|
//! | `dsh mcp` | serve `bash` and the task tools to an MCP client over stdio |
//! | `dsh demo` | show one agent at work with background tasks; needs no key and no network |
//! | `dsh config schema` | print the JSON Schema of the configuration file |
//! | `dsh config show` | print the configuration in force |
//! | `dsh config surface` | print everything the model is shown under this configuration |
//!
//! Exit codes: 0 done (for `mcp`: the client closed its end), 1 failed, 2 wrong usage or configuration,
//! 130 after SIGINT, 143 after SIGTERM.

mod cli;
mod demo;
mod mcp;
mod settings;
mod signals;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // First of all, while this process still has one thread: children must not inherit what was handed to us.
    dsh_subprocess::guard_entry();
    let cli = cli::Cli::parse();
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("dsh: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

fn run(cli: cli::Cli) -> Result<u8, Failure> {
    if let cli::Command::Config { action } = cli.command {
        return settings::print(action, cli.config.as_deref());
    }
    let config = settings::load(cli.config.as_deref())?;
    log_to_stderr();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let code = runtime.block_on(async {
        match cli.command {
            cli::Command::Mcp => mcp::run(config).await,
            cli::Command::Demo => demo::run(config).await,
            cli::Command::Config { .. } => Ok(0),
        }
    });
    // A read of stdin that blocks cannot be cancelled; everything else has been awaited by now.
    runtime.shutdown_background();
    code
}

/// Logs go to stderr, filtered by `RUST_LOG` (default `warn,rmcp=error`: the SDK warns of every error it answers): stdout belongs to the command's output.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,rmcp=error"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}

/// Why the command could not do its work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The configuration was refused; the text lists every fault.
    #[error("{0}")]
    Config(#[from] dsh_agent_core::ConfigError),
    /// The services could not be put together.
    #[error("{0}")]
    Assemble(#[from] dsh_agent_core::AssembleError),
    /// The prompt sections do not fit together.
    #[error("{0}")]
    Prompt(#[from] dsh_system_prompt::AssembleError),
    /// The MCP connection broke.
    #[error("{0}")]
    Serve(#[from] dsh_mcp::ServeError),
    /// The demonstration could not be set up.
    #[error("{0}")]
    Demo(#[from] demo::DemoError),
    /// The operating system refused something at startup.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Failure {
    /// The exit code that goes with this failure.
    fn code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Assemble(_) | Self::Prompt(_) | Self::Serve(_) | Self::Demo(_) | Self::Io(_) => 1,
        }
    }
}
