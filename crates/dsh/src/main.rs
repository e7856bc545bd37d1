//! The `dsh` binary: background tasks an agent can trust, on the command line.
//!
//! | command | what it does |
//! |---|---|
//! | `dsh run` | give an agent something to do in this directory, and print what it says |
//! | `dsh mcp` | serve `bash` and the task tools to an MCP client over stdio |
//! | `dsh acp` | serve an agent to an ACP editor over stdio |
//! | `dsh demo` | show one agent at work with background tasks; needs no key and no network |
//! | `dsh config schema` | print the JSON Schema of the configuration file |
//! | `dsh config show` | print the configuration in force |
//! | `dsh config surface` | print everything the model is shown under this configuration |
//! | `dsh config preset list`, `dsh config preset copy A B` | name the presets, begin one of your own |
//!
//! Exit codes: 0 done (for `run`: its last turn completed; for `mcp` and `acp`: the client closed its end), 1 failed, 2 wrong usage or
//! configuration,
//! 129 after SIGHUP, 130 after SIGINT, 131 after SIGQUIT, 143 after SIGTERM. Started with SIGHUP ignored (`nohup`), it
//! ignores SIGHUP.

mod acp;
mod cli;
mod demo;
mod log;
mod mcp;
mod output;
mod run;
mod services;
mod settings;
mod signals;
mod streams;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use dsh_agent_core::AssembleError;

use crate::cli::{Cli, Command};
use crate::signals::{Caught, Hangup, Signals};

fn main() -> ExitCode {
    let hangup = Hangup::inherited();
    // Before everything else, while this process still has one thread: children must not inherit what was handed to us.
    dsh_subprocess::guard_entry();
    let done = Caught::new(hangup)
        .map_err(Failure::from)
        .and_then(|caught| work(Cli::parse(), caught));
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.code())
        }
    }
}

/// Does what was asked for, and returns the exit code: that of a signal, if one came.
fn work(cli: Cli, caught: Caught) -> Result<u8, Failure> {
    let _flush = log::to_stderr();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let (signals, watcher) = Signals::listen(caught)?;
        let done = tokio::select! {
            done = run(cli, &signals) => done,
            never = watcher => match never {},
        };
        match (signals.exit_code(), done) {
            (None, done) => done,
            (Some(code), Ok(_) | Err(Failure::Stopped)) => Ok(code),
            (Some(code), Err(failure)) => {
                failure.tell();
                Ok(code)
            }
        }
    });
    // A read of stdin that blocks cannot be cancelled; everything else has been awaited by now.
    runtime.shutdown_background();
    done
}

async fn run(cli: Cli, signals: &Signals) -> Result<u8, Failure> {
    let Cli {
        config: file,
        composition: flags,
        command,
    } = cli;
    // A file that is a pipe may never have anything to read.
    let settings = async |file, flags| unless_stopped(signals, move || settings::load(file, &flags)).await;
    match command {
        Command::Run(args) => run::run(settings(file, flags).await?, args, signals).await,
        Command::Acp(model) => acp::run(settings(file, flags).await?, model, signals).await,
        Command::Mcp => mcp::run(settings(file, flags).await?, signals).await,
        Command::Demo => demo::run(settings(file, flags).await?, signals).await,
        Command::Config { action } => {
            unless_stopped(signals, move || settings::print(action, file, &flags)).await
        }
    }
}

/// Does something that blocks, and waits for it until a signal comes.
async fn unless_stopped<T, E>(
    signals: &Signals,
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    E: Into<Failure> + Send + 'static,
{
    let working = tokio::task::spawn_blocking(work);
    tokio::select! {
        biased;
        () = signals.stop.cancelled() => Err(Failure::Stopped),
        done = working => match done {
            Ok(done) => done.map_err(Into::into),
            Err(panicked) => Err(std::io::Error::other(panicked).into()),
        },
    }
}

/// Why the command could not do its work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The configuration was refused; the text lists every fault.
    #[error("{0}")]
    Config(#[from] dsh_agent_core::ConfigError),
    /// The profile or the preset was refused; the text lists every fault of both.
    #[error("{0}")]
    Composition(#[from] dsh_agent_core::CompositionError),
    /// A preset is not there, or could not be copied.
    #[error("{0}")]
    Preset(#[from] dsh_agent_core::PresetError),
    /// The services could not be put together.
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    /// The prompt sections do not fit together.
    #[error("{0}")]
    Prompt(#[from] dsh_system_prompt::AssembleError),
    /// The command line names nobody who answers.
    #[error("{0}")]
    Model(#[from] dsh_agent_core::OverrideError),
    /// There is nobody to answer.
    #[error("{0}")]
    Models(#[from] dsh_agent_core::ModelsError),
    /// The run could not begin, or its result could not be told.
    #[error("{0}")]
    Run(#[from] run::RunError),
    /// The MCP connection broke.
    #[error("{0}")]
    Serve(#[from] dsh_mcp::ServeError),
    /// The ACP connection could not begin.
    #[error("{0}")]
    Acp(#[from] acp::AcpError),
    /// The demonstration could not be set up.
    #[error("{0}")]
    Demo(#[from] demo::DemoError),
    /// A signal came first, or the services were shut down.
    #[error("stopped")]
    Stopped,
    /// The operating system refused something, stdout for instance.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Failure {
    /// Says on stderr what went wrong, unless it is that nobody reads stdout any more.
    fn tell(&self) {
        if let Self::Io(error) | Self::Demo(demo::DemoError::Output(error)) = self
            && error.kind() == std::io::ErrorKind::BrokenPipe
        {
            return;
        }
        let (mut stderr, text) = (std::io::stderr(), self.to_string());
        let text = streams::shown(&stderr, &text);
        // There is no third place to complain to.
        let _ = writeln!(stderr, "dsh: {text}");
    }

    /// The exit code that goes with this failure.
    fn code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Composition(_) | Self::Preset(_) | Self::Model(_) | Self::Models(_) => 2,
            Self::Assemble(error) if error.blames_configuration() => 2,
            Self::Run(error) => error.code(),
            Self::Acp(error) => error.code(),
            Self::Assemble(_)
            | Self::Prompt(_)
            | Self::Serve(_)
            | Self::Demo(_)
            | Self::Stopped
            | Self::Io(_) => 1,
        }
    }
}
