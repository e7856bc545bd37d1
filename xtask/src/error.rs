//! What can go wrong in a build step.

use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a step did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("`{command}` failed ({status})")]
    Failed { command: String, status: ExitStatus },
    #[error("cannot use {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("cannot read the answer of `cargo metadata`: {0}")]
    Metadata(String),
    #[error("tidy found {0} problem(s), listed above")]
    Untidy(usize),
    #[error("tests were not run: {0}")]
    NotRun(String),
    #[error("cannot have {package}: {problem}")]
    Product { package: String, problem: String },
    #[error("no crate has loom models (a test target named loom)")]
    NoLoomModels,
    #[error("an input broke a promise: {}; the table says how it is repeated", .0.join(", "))]
    Crashed(Vec<String>),
    #[error("failing steps: {}", .0.join(", "))]
    Steps(Vec<String>),
}

impl Error {
    /// Names the file an I/O error belongs to.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
}
