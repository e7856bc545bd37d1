//! `cargo xtask chaos`: everything at once, at random.

use crate::error::Error;
use crate::workspace::Workspace;
use crate::{process, test};

/// Runs rounds that begin with `seed`, or with one of the moment, for so many minutes: over everything, or `only` one part.
pub(crate) fn run(
    workspace: &Workspace,
    seed: Option<u64>,
    minutes: f64,
    only: Option<&str>,
) -> Result<(), Error> {
    let driver = workspace.cargo([
        "run",
        "--quiet",
        "--locked",
        "--package",
        "tests",
        "--bin",
        "chaos",
        "--",
    ]);
    let mut driver = test::with_programs(workspace, driver)?;
    driver.args(["--minutes", &minutes.to_string()]);
    if let Some(seed) = seed {
        driver.args(["--seed", &seed.to_string()]);
    }
    if let Some(only) = only {
        driver.args(["--only", only]);
    }
    process::run(&mut driver)
}
