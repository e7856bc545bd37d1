//! What the agent is to do.

use std::io::{IsTerminal, stdin};

use tokio::io::AsyncReadExt;

use super::RunError;
use crate::streams;

/// The prompt that was given; from stdin if it is `-` or, where that is no terminal, missing.
///
/// # Cancel safety
///
/// What was read is lost; the thread that reads stays until the process ends.
pub(super) async fn read(given: Option<&str>) -> Result<String, RunError> {
    let prompt = match given {
        Some("-") => read_stdin().await?,
        Some(given) => given.to_owned(),
        None if stdin().is_terminal() => return Err(RunError::NoPrompt),
        None => read_stdin().await?,
    };
    if prompt.trim().is_empty() {
        return Err(RunError::NoPrompt);
    }
    Ok(prompt)
}

async fn read_stdin() -> Result<String, RunError> {
    let mut input = tokio::io::stdin();
    streams::block(&input).map_err(RunError::Stdin)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).await.map_err(RunError::Stdin)?;
    String::from_utf8(bytes).map_err(|_| RunError::PromptNotText)
}
