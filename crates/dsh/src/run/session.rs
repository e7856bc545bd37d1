//! The session of a run: new or gone on with, in a file or not.

use std::io::ErrorKind;
use std::path::Path;

use dsh_session::{Session, SessionFile, SessionHeader, SessionId, StoreError};
use uuid::Uuid;

use super::RunError;

/// A new session that works in this directory, or the one of `file` that is to go on.
pub(super) fn open(file: Option<&Path>, resume: bool) -> Result<Session, RunError> {
    let Some(path) = file else {
        let cwd = std::env::current_dir().map_err(RunError::Cwd)?;
        return Ok(Session::new(new_id(), Some(cwd)));
    };
    let file = if resume {
        SessionFile::open(path).map_err(|error| match refused(error) {
            RunError::Unfit(error @ StoreError::Io { .. }) => RunError::Missing(error),
            error => error,
        })?
    } else {
        let cwd = std::env::current_dir().map_err(RunError::Cwd)?;
        let header = SessionHeader::new(new_id(), Some(cwd));
        SessionFile::create(path, header).map_err(refused)?
    };
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
