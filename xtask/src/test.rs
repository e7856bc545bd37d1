//! `cargo xtask test`: everything that needs no key; `cargo xtask soak`: the long checks.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::nextest::Nextest;
use crate::workspace::Workspace;
use crate::{foreign, process};

/// What it means that a program of other people cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// The tests that need it are listed, and the others decide.
    IsReported,
    /// The tests that need it are listed, and that fails the run.
    IsAnError,
}

/// Runs unit, integration and real-client tests, then the documentation examples.
///
/// With `arguments` (a filter, usually) only nextest runs, with them.
pub(crate) fn run(workspace: &Workspace, arguments: &[String], not_run: NotRun) -> Result<(), Error> {
    let nextest = Nextest::ready(workspace)?;
    let mut tests = with_programs(workspace, nextest.command("run"))?;
    let foreign = foreign::prepare(workspace);
    for foreign in &foreign {
        if let Ok(program) = &foreign.program {
            tests.env(foreign.variable, program);
        }
    }
    // With a filter of the caller's, a test fails by itself and says what it misses.
    if let Some(filter) = foreign::runnable(&foreign).filter(|_| arguments.is_empty()) {
        tests.args(["--filterset", &filter]);
    }
    let tests = process::run(tests.args(arguments));
    tell_not_permitted(workspace);
    if !arguments.is_empty() {
        return tests;
    }
    let examples = process::run(&mut workspace.cargo(["test", "--locked", "--workspace", "--doc"]));
    let left_out = foreign::report(&nextest, &foreign)?;
    tests.and(examples)?;
    match (left_out, not_run) {
        (Some(reasons), NotRun::IsAnError) => Err(Error::NotRun(reasons)),
        (None, _) | (_, NotRun::IsReported) => Ok(()),
    }
}

/// Runs the long checks: the test target `soak` of every crate that has one, one test at a time.
///
/// They are left out of [`run`]; `.config/nextest.toml` has the two profiles.
pub(crate) fn soak(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    let mut tests = with_programs(workspace, Nextest::ready(workspace)?.command("run"))?;
    tests.args([
        "--workspace",
        "--test",
        "soak",
        "--profile",
        "soak",
        "--no-tests",
        "fail",
    ]);
    let tests = process::run(tests.args(arguments));
    tell_not_permitted(workspace);
    tests
}

/// Builds the programs that tests start, and names them in the environment of `tests`.
pub(crate) fn with_programs(workspace: &Workspace, mut tests: Command) -> Result<Command, Error> {
    process::run(&mut workspace.cargo(["build", "--locked", "--bin", "dsh", "--bin", "dsh-guard"]))?;
    tests.env("DSH_BIN", workspace.target().join("debug/dsh"));
    // A test program cannot be the guard of its own commands.
    tests.env("DSH_GUARD", workspace.target().join("debug/dsh-guard"));
    let not_permitted = not_permitted(workspace);
    let _ = std::fs::remove_file(&not_permitted);
    tests.env("DSH_NOT_RUN", not_permitted);
    Ok(tests)
}

/// Where tests note that this system does not let them run: they need a namespace or another user.
fn not_permitted(workspace: &Workspace) -> PathBuf {
    workspace.target().join("not-run.txt")
}

fn tell_not_permitted(workspace: &Workspace) {
    print!(
        "{}",
        std::fs::read_to_string(not_permitted(workspace)).unwrap_or_default()
    );
}
