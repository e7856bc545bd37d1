//! The session of a run: new or gone on with, in a file or not.

use std::io;
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
        SessionFile::open(path).map_err(|error| match error {
            StoreError::Io { ref source, .. } if source.kind() == io::ErrorKind::NotFound => {
                RunError::Missing(error)
            }
            error => RunError::Session(error),
        })?
    } else {
        let cwd = std::env::current_dir().map_err(RunError::Cwd)?;
        let header = SessionHeader::new(new_id(), Some(cwd));
        SessionFile::create(path, header).map_err(|error| match error {
            StoreError::Exists { .. } => RunError::Exists(error),
            error => RunError::Session(error),
        })?
    };
    Ok(Session::persisted(file))
}

fn new_id() -> SessionId {
    SessionId::new(Uuid::new_v4().to_string())
}
