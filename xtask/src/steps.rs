//! The steps that are one or two commands each.

use crate::error::Error;
use crate::nextest::Nextest;
use crate::process;
use crate::workspace::Workspace;

/// Formatting, checked and not changed.
pub(crate) fn fmt(workspace: &Workspace) -> Result<(), Error> {
    process::run(&mut workspace.cargo(["fmt", "--all", "--check"]))
}

/// Lints of the compiler and clippy; a warning is an error.
pub(crate) fn clippy(workspace: &Workspace) -> Result<(), Error> {
    process::run(&mut workspace.cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Crate documentation; a warning or a broken link is an error.
pub(crate) fn docs(workspace: &Workspace) -> Result<(), Error> {
    process::run(
        workspace
            .cargo(["doc", "--workspace", "--no-deps", "--locked"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Writes down what a model sees, as the binary says it with no configuration file. A test compares the two.
pub(crate) fn surface(workspace: &Workspace) -> Result<(), Error> {
    let mut dsh = workspace.cargo([
        "run", "--quiet", "--locked", "--bin", "dsh", "--", "config", "surface",
    ]);
    let surface = process::output(dsh.env("DSH_CONFIG", "/dev/null"))?;
    let path = workspace.root.join("docs/model-surface.md");
    std::fs::write(&path, surface).map_err(Error::file(path))
}

/// The loom models: the test target `loom` of every crate that has one.
///
/// They have a cfg and a target directory of their own: loom's usual `--cfg loom` would remove parts of tokio, and
/// the flag would make everything else build again.
pub(crate) fn loom(workspace: &Workspace) -> Result<(), Error> {
    let packages = workspace.packages()?;
    let models = packages
        .iter()
        .filter(|package| package.tests.iter().any(|test| test == "loom"));
    let models: Vec<&str> = models.map(|package| package.name.as_str()).collect();
    if models.is_empty() {
        return Err(Error::NoLoomModels);
    }
    let mut command = Nextest::ready(workspace)?.command("run");
    command
        .args(["--release", "--no-tests", "fail", "--test", "loom"])
        .env("RUSTFLAGS", "--cfg dsh_loom");
    command.arg("--target-dir").arg(workspace.target().join("loom"));
    for model in models {
        command.args(["--package", model]);
    }
    process::run(&mut command)
}
