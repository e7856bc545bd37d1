//! Build automation: `cargo xtask <command>`.
//!
//! It depends on no other crate of the workspace, so it builds in seconds and works while they do not.

mod acp_client;
mod bench;
mod chaos;
mod ci;
mod client;
mod error;
mod foreign;
mod fuzz;
mod live;
mod nextest;
mod process;
mod products;
mod steps;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;
use crate::products::Generation;
use crate::workspace::Workspace;

/// Build automation of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every test that needs no key: unit, integration, real clients, documentation examples.
    Test {
        /// Arguments for `cargo nextest run`, for example a name filter.
        #[arg(last = true)]
        nextest: Vec<String>,
    },
    /// Run the long checks: thousands of commands, hundreds of random trees; some minutes.
    Soak {
        /// Arguments for `cargo nextest run`, for example a name filter.
        #[arg(last = true)]
        nextest: Vec<String>,
    },
    /// Measure what it all costs, beside what the kernel or a bare data structure costs.
    Bench(bench::Options),
    /// Drive the server, agents and the registry at random, with everything that can befall them, and look at what must hold.
    Chaos {
        /// Where the choices come from: a failing run says which one repeats it. The time, if there is none.
        #[arg(long)]
        seed: Option<u64>,
        /// For how long new rounds begin. With 0 there is one.
        #[arg(long, default_value_t = 2.0)]
        minutes: f64,
        /// What the rounds are over: servers, agents or registry. Everything, without it.
        #[arg(long)]
        only: Option<String>,
    },
    /// Make up inputs for all that reads what others write: arguments, output, files, streams.
    Fuzz(fuzz::Options),
    /// Fetch the agent products that tests drive, at their pinned versions, into the target directory.
    Products {
        /// The oldest versions that must work, and not the newest: `env $(cargo xtask products --oldest) cargo xtask test`.
        #[arg(long)]
        oldest: bool,
    },
    /// Run what talks to real models, for which a key has to be there: OPENAI_API_KEY (Codex), ANTHROPIC_API_KEY (Claude
    /// Code), DEEPSEEK_API_KEY (`dsh run`). It costs money.
    Live {
        /// Arguments for `cargo nextest run`, for example a name filter.
        #[arg(last = true)]
        nextest: Vec<String>,
    },
    /// Check what the compiler does not: layers, sizes, words, documents.
    Tidy,
    /// Explore the interleavings of the lock-based cores.
    Loom,
    /// Build the crate documentation; a broken link is an error.
    Docs,
    /// Write docs/model-surface.md anew: what a model sees.
    Surface,
    /// Everything a change must pass: fmt, clippy, tidy, test, soak, loom, docs.
    Ci,
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> Result<(), Error> {
    let workspace = Workspace::find()?;
    match cli.command {
        Command::Test { nextest } => test::run(&workspace, &nextest, test::NotRun::IsReported),
        Command::Soak { nextest } => test::soak(&workspace, &nextest),
        Command::Bench(options) => bench::run(&workspace, &options),
        Command::Chaos { seed, minutes, only } => chaos::run(&workspace, seed, minutes, only.as_deref()),
        Command::Fuzz(options) => fuzz::run(&workspace, &options),
        Command::Products { oldest } => products::run(
            &workspace,
            match oldest {
                true => Generation::Oldest,
                false => Generation::Newest,
            },
        ),
        Command::Live { nextest } => live::run(&workspace, &nextest),
        Command::Tidy => tidy::run(&workspace),
        Command::Loom => steps::loom(&workspace),
        Command::Docs => steps::docs(&workspace),
        Command::Surface => steps::surface(&workspace),
        Command::Ci => ci::run(&workspace),
    }
}
