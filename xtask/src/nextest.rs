//! The test runner, and how it gets here.

use std::ffi::OsString;
use std::process::Command;

use crate::error::Error;
use crate::process;
use crate::workspace::Workspace;

/// Installed below `target` when the machine has none.
const VERSION: &str = "0.9.143";

/// A nextest that can be run.
///
/// The tests need it: each one runs in a process of its own, and many look at their own children and open files.
pub(crate) struct Nextest<'workspace> {
    workspace: &'workspace Workspace,
    /// Replaces `PATH`, where the machine's own has no nextest.
    path: Option<OsString>,
}

impl<'workspace> Nextest<'workspace> {
    /// Uses the installed one, else installs the pinned one below `target` (once, some minutes).
    pub(crate) fn ready(workspace: &'workspace Workspace) -> Result<Self, Error> {
        let path = process::tool(workspace, "nextest", VERSION)?;
        Ok(Nextest { workspace, path })
    }

    /// `cargo nextest <subcommand> --locked`, to be completed.
    pub(crate) fn command(&self, subcommand: &str) -> Command {
        let mut command = self.workspace.cargo(["nextest", subcommand, "--locked"]);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }
}
