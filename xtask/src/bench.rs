//! `cargo xtask bench`: what it all costs, beside what the kernel or a bare data structure costs.

use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// What to measure, and what to do with it: the options of the benchmark program itself.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Every row, from few samples: some minutes.
    #[arg(long)]
    quick: bool,
    /// Fail when a row is beyond twice its target, and name it.
    #[arg(long)]
    check: bool,
    /// Write the table into docs/benchmarks.md.
    #[arg(long)]
    write: bool,
    /// Only this group of rows, by name; a wrong one lists them. May be given several times.
    #[arg(long, value_name = "GROUP")]
    only: Vec<String>,
}

/// Builds the benchmarks and the servers they talk to, optimised, and runs them: in the real-time class if this user may
/// have it, where other work of the machine cannot push them aside.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<(), Error> {
    let mut build = workspace.cargo(["build", "--release", "--locked", "--bin", "bench", "--bin", "dsh"]);
    process::run(build.args([
        "--package",
        "dsh-mcp",
        "--example",
        "echo",
        "--package",
        "bench",
        "--package",
        "dsh",
    ]))?;
    let program = workspace.target().join("release/bench");
    let mut bench = if process::succeeds(Command::new("chrt").args(["-f", "1", "true"])) {
        let mut chrt = Command::new("chrt");
        chrt.args(["-f", "1"]).arg(program);
        chrt
    } else {
        Command::new(program)
    };
    bench.current_dir(&workspace.root);
    for (wanted, argument) in [(options.quick, "--quick"), (options.check, "--check")] {
        bench.args(wanted.then_some(argument));
    }
    if options.write {
        bench.args(["--write", "docs/benchmarks.md"]);
    }
    for group in &options.only {
        bench.args(["--only", group]);
    }
    process::run(&mut bench)
}
