//! Running other programs.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::workspace::Workspace;

/// Runs `command` with inherited output; anything but exit code 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let shown = shown(command);
    eprintln!("$ {shown}");
    let status = command.status().map_err(|source| Error::Start {
        program: program(command),
        source,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed {
            command: shown,
            status,
        })
    }
}

/// Runs `command` and returns what it wrote to stdout.
pub(crate) fn output(command: &mut Command) -> Result<String, Error> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| Error::Start {
            program: program(command),
            source,
        })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(Error::Failed {
            command: shown(command),
            status: output.status,
        })
    }
}

/// Whether `command` can be started and ends with exit code 0; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Makes sure that `cargo <name>` is there: the machine's own, else one of this version, which is installed below `target`
/// once. Then what is returned is to replace `PATH`.
pub(crate) fn tool(workspace: &Workspace, name: &str, version: &str) -> Result<Option<OsString>, Error> {
    if succeeds(&mut workspace.cargo([name, "--version"])) {
        return Ok(None);
    }
    let package = format!("cargo-{name}");
    let root = workspace.target().join("tools");
    let bin = root.join("bin");
    if !bin.join(&package).exists() {
        eprintln!("{package} is missing: installing {version} below the target directory, once");
        let mut install = workspace.cargo(["install", &package, "--locked", "--version", version]);
        run(install.arg("--root").arg(&root))?;
    }
    let old = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&old))).ok())
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
