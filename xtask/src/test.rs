//! `cargo xtask test`: everything that needs no key; `cargo xtask soak`: the long checks.

use std::process::Command;

use crate::error::Error;
use crate::nextest::Nextest;
use crate::workspace::Workspace;
use crate::{client, process};

/// Selects the tests that need the foreign client.
const CLIENT_TESTS: &str = "package(tests) & test(/python_client/)";

/// What it means that the foreign client cannot be fetched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// Its tests are listed, and the others decide.
    IsReported,
    /// Its tests are listed, and that fails the run.
    IsAnError,
}

/// Runs unit, integration and real-client tests, then the documentation examples.
///
/// With `arguments` (a filter, usually) only nextest runs, with them.
pub(crate) fn run(workspace: &Workspace, arguments: &[String], not_run: NotRun) -> Result<(), Error> {
    let nextest = Nextest::ready(workspace)?;
    let mut tests = with_programs(workspace, nextest.command("run"))?;
    let client = client::prepare(workspace);
    match &client {
        Ok(python) => _ = tests.env("DSH_TEST_PYTHON", python),
        Err(_) if arguments.is_empty() => _ = tests.args(["--filterset", &format!("not ({CLIENT_TESTS})")]),
        // With a filter of the caller's, a client test fails by itself and says what it misses.
        Err(_) => {}
    }
    let tests = process::run(tests.args(arguments));
    if !arguments.is_empty() {
        return tests;
    }
    let examples = process::run(&mut workspace.cargo(["test", "--locked", "--workspace", "--doc"]));
    if let Err(reason) = client {
        report(&nextest, &reason, not_run)?;
    }
    tests.and(examples)
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
    process::run(tests.args(arguments))
}

/// Builds the programs that tests start, and names them in the environment of `tests`.
fn with_programs(workspace: &Workspace, mut tests: Command) -> Result<Command, Error> {
    process::run(&mut workspace.cargo(["build", "--locked", "--bin", "dsh", "--bin", "dsh-guard"]))?;
    tests.env("DSH_BIN", workspace.target().join("debug/dsh"));
    // A test program cannot be the guard of its own commands.
    tests.env("DSH_GUARD", workspace.target().join("debug/dsh-guard"));
    Ok(tests)
}

/// Names every test that needs the client, and why it was left out.
fn report(nextest: &Nextest<'_>, reason: &Error, not_run: NotRun) -> Result<(), Error> {
    let mut list = nextest.command("list");
    list.args(["--message-format", "oneline", "--filterset", CLIENT_TESTS]);
    for test in process::output(&mut list)?.lines() {
        println!("NOT RUN {test}");
    }
    println!("the MCP client could not be fetched: {reason}");
    match not_run {
        NotRun::IsReported => Ok(()),
        NotRun::IsAnError => Err(Error::NotRun(reason.to_string())),
    }
}
