//! Programs of other people that tests drive, each fetched or not.

use std::path::PathBuf;

use crate::error::Error;
use crate::nextest::Nextest;
use crate::products::{self, Product};
use crate::workspace::Workspace;
use crate::{acp_client, client, process};

/// One program, and the tests that cannot run without it.
pub(crate) struct Foreign {
    /// For people.
    pub(crate) name: &'static str,
    /// Tells the tests where it is.
    pub(crate) variable: &'static str,
    /// A filter that selects the tests which need it.
    tests: &'static str,
    pub(crate) program: Result<PathBuf, Error>,
}

/// Fetches what is not there yet.
pub(crate) fn prepare(workspace: &Workspace) -> [Foreign; 4] {
    let [codex, claude] = prepare_products(workspace);
    [
        Foreign {
            name: "the MCP client",
            variable: "DSH_TEST_PYTHON",
            tests: "package(tests) & test(/python_client/)",
            program: client::prepare(workspace),
        },
        Foreign {
            name: "the ACP client",
            variable: "DSH_TEST_ACP",
            tests: "package(tests) & test(/node_client/)",
            program: acp_client::prepare(workspace),
        },
        codex,
        claude,
    ]
}

/// Fetches those of them that are agent products.
pub(crate) fn prepare_products(workspace: &Workspace) -> [Foreign; 2] {
    [
        Foreign {
            name: "Codex",
            variable: Product::Codex.variable(),
            tests: "package(tests) & test(/codex/)",
            program: products::prepare(workspace, Product::Codex),
        },
        Foreign {
            name: "Claude Code",
            variable: Product::ClaudeCode.variable(),
            tests: "package(tests) & test(/claude/)",
            program: products::prepare(workspace, Product::ClaudeCode),
        },
    ]
}

/// A filter for every test that needs nothing that is missing; `None` when nothing is.
pub(crate) fn runnable(foreign: &[Foreign]) -> Option<String> {
    let missing = foreign.iter().filter(|foreign| foreign.program.is_err());
    let tests: Vec<String> = missing.map(|foreign| format!("({})", foreign.tests)).collect();
    (!tests.is_empty()).then(|| format!("not ({})", tests.join(" | ")))
}

/// Names every test that was left out, and why; the reasons, if there are any.
pub(crate) fn report(nextest: &Nextest<'_>, foreign: &[Foreign]) -> Result<Option<String>, Error> {
    let mut reasons = Vec::new();
    for foreign in foreign {
        let Err(error) = &foreign.program else { continue };
        let mut list = nextest.command("list");
        list.args(["--message-format", "oneline", "--filterset", foreign.tests]);
        for test in process::output(&mut list)?.lines() {
            println!("NOT RUN {test}");
        }
        let reason = format!("{} could not be fetched: {error}", foreign.name);
        println!("{reason}");
        reasons.push(reason);
    }
    Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(tests: &'static str, program: Result<PathBuf, Error>) -> Foreign {
        Foreign {
            name: "it",
            variable: "IT",
            tests,
            program,
        }
    }

    #[test]
    fn only_what_needs_a_missing_program_is_left_out() {
        let missing = || Err(Error::NoLoomModels);
        assert_eq!(runnable(&[foreign("test(/a/)", Ok(PathBuf::new()))]), None);
        let all = [
            foreign("test(/a/)", missing()),
            foreign("test(/b/)", Ok(PathBuf::new())),
            foreign("test(/c/)", missing()),
        ];
        assert_eq!(runnable(&all).as_deref(), Some("not ((test(/a/)) | (test(/c/)))"));
    }
}
