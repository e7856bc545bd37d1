//! The session of a run: new or gone on with, in a file or not.

use std::io::ErrorKind;

use dsh_agent_core::ServiceContext;
use dsh_session::{Session, SessionFile, SessionId, StoreError};
use uuid::Uuid;

use super::RunError;
use crate::cli::RunArgs;

/// A new session that works in this directory, or the one of `file` that is to go on.
pub(super) fn open(
    context: &ServiceContext,
    args: &RunArgs,
    named_preset: Option<&str>,
) -> Result<Session, RunError> {
    let header = || {
        let cwd = std::env::current_dir().map_err(RunError::Cwd)?;
        Ok::<_, RunError>(context.session_header(new_id(), Some(cwd)))
    };
    let Some(path) = args.session.as_deref() else {
        return Ok(Session::with_header(header()?));
    };
    let file = if args.resume {
        SessionFile::open(path).map_err(|error| match refused(error) {
            RunError::Unfit(error @ StoreError::Io { .. }) => RunError::Missing(error),
            error => error,
        })?
    } else {
        SessionFile::create(path, header()?).map_err(refused)?
    };
    if let (Some(asked), Some(had)) = (named_preset, file.header().preset.as_deref())
        && asked != had
    {
        return Err(RunError::OtherPreset {
            asked: asked.to_owned(),
            had: had.to_owned(),
        });
    }
    Ok(Session::persisted(file))
}

/// Whether another file has to be named, or this one is hindered.
fn refused(error: StoreError) -> RunError {
    let unfit = match &error {
        StoreError::Exists { .. } | StoreError::NotAFile { .. } | StoreError::NoHeader { .. } => true,
        StoreError::Io { source, .. } => matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory
        ),
        _ => false,
    };
    match unfit {
        true => RunError::Unfit(error),
        false => RunError::Session(error),
    }
}

fn new_id() -> SessionId {
    SessionId::new(Uuid::new_v4().to_string())
}
