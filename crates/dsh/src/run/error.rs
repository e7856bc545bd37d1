//! The errors of a run, and their exit codes.

use std::io::{self, ErrorKind};

use dsh_agent_loop::CreateError;
use dsh_session::StoreError;

/// Why a run could not begin, or tell its result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// There is nothing to do.
    #[error("no prompt: give it as an argument, or pipe it to stdin")]
    NoPrompt,
    /// What came from stdin is no text.
    #[error("the prompt on stdin is not UTF-8")]
    PromptNotText,
    /// Stdin cannot be read.
    #[error("cannot read the prompt from stdin: {0}")]
    Stdin(#[source] io::Error),
    /// There is no session in the file.
    #[error("no session to resume: {0}")]
    Missing(#[source] StoreError),
    /// The session's file is of no use.
    #[error(transparent)]
    Session(#[from] StoreError),
    /// The session is that of an agent of another preset.
    #[error(
        "the session has the preset \"{had}\" and cannot be resumed with \"{asked}\": leave out --preset"
    )]
    OtherPreset {
        /// The one that was asked for.
        asked: String,
        /// The one that it has.
        had: String,
    },
    /// The working directory is gone.
    #[error("cannot tell the working directory: {0}")]
    Cwd(#[source] io::Error),
    /// There is no agent.
    #[error("cannot create the agent: {0}")]
    Create(#[source] CreateError),
    /// Nobody can be told.
    #[error("cannot write to stdout: {0}")]
    Output(#[source] io::Error),
}

impl RunError {
    /// The exit code that goes with it.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::NoPrompt | Self::PromptNotText | Self::Missing(_) | Self::OtherPreset { .. } => 2,
            Self::Session(error) if is_unfit(error) => 2,
            Self::Stdin(_) | Self::Session(_) | Self::Cwd(_) | Self::Create(_) | Self::Output(_) => 1,
        }
    }
}

/// Whether another file has to be named; otherwise this one is hindered.
pub(super) fn is_unfit(error: &StoreError) -> bool {
    match error {
        StoreError::Exists { .. } | StoreError::NotAFile { .. } | StoreError::NoHeader { .. } => true,
        StoreError::Io { source, .. } => matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
        ),
        _ => false,
    }
}
