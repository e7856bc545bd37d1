//! The session of a run: new or gone on with, in a file or not.

use dsh_agent_core::ServiceContext;
use dsh_session::{Session, SessionFile, SessionId, StoreError};
use uuid::Uuid;

use super::RunError;
use super::error::is_unfit;
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
        SessionFile::open(path).map_err(|error| match error {
            StoreError::Io { .. } if is_unfit(&error) => RunError::Missing(error),
            error => RunError::Session(error),
        })?
    } else {
        SessionFile::create(path, header()?).map_err(RunError::Session)?
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

fn new_id() -> SessionId {
    SessionId::new(Uuid::new_v4().to_string())
}
