//! The foreign ACP client that the integration tests drive the agent with.
//!
//! It is the official package for Node at one exact version, with everything it needs and the integrity of each archive
//! in a lock file. npm installs it below `target`, without running anything of it; a change of the lock file installs it
//! again.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

const PINS: &str = "tests/clients/acp";

/// The directory in which Node finds the client, fetched if needed.
pub(crate) fn prepare(workspace: &Workspace) -> Result<PathBuf, Error> {
    let pins = workspace.root.join(PINS);
    let lock = pins.join("package-lock.json");
    let pinned = std::fs::read_to_string(&lock).map_err(Error::file(&lock))?;
    let directory = workspace.target().join("clients/acp");
    let stamp = directory.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
        return Ok(directory);
    }
    std::fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
    for name in ["package.json", "package-lock.json"] {
        let copy = directory.join(name);
        std::fs::copy(pins.join(name), &copy).map_err(Error::file(&copy))?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    process::run(npm.current_dir(&directory))?;
    let import = "await import('@agentclientprotocol/sdk')";
    let mut node = Command::new("node");
    process::run(
        node.args(["--input-type=module", "--eval", import])
            .current_dir(&directory),
    )?;
    // Last, so that an interrupted installation is repeated.
    std::fs::write(&stamp, pinned).map_err(Error::file(&stamp))?;
    Ok(directory)
}
