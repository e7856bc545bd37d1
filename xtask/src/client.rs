//! The foreign MCP client that the integration tests drive the server with.
//!
//! It is the official Python package at one exact version, with everything it needs pinned as well, in a virtual
//! environment below `target`. It is fetched once; a change of the pins fetches it again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

const PINS: &str = "tests/clients/pins.txt";

/// The Python interpreter that has the client, fetched if needed.
pub(crate) fn prepare(workspace: &Workspace) -> Result<PathBuf, Error> {
    let file = workspace.root.join(PINS);
    let pins = std::fs::read_to_string(&file).map_err(Error::file(&file))?;
    let directory = workspace.target().join("clients/venv");
    let python = directory.join("bin/python");
    let stamp = directory.join("pins.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == pins) {
        return Ok(python);
    }
    fetch(&directory, &python, &file)?;
    std::fs::write(&stamp, pins).map_err(Error::file(&stamp))?;
    Ok(python)
}

/// The stamp is written last, so an interrupted fetch is repeated from nothing.
fn fetch(directory: &Path, python: &Path, pins: &Path) -> Result<(), Error> {
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(directory),
    )?;
    process::run(
        Command::new(python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "mcp",
                "-c",
            ])
            .arg(pins),
    )?;
    process::run(Command::new(python).args(["-c", "import mcp"]))
}
