//! Where sessions are kept: one log per session, named by its id.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{ListSessionsRequest, ListSessionsResponse};
use dsh_session::{Session, SessionFile, SessionHeader, SessionId, StoreError};
use uuid::Uuid;

use crate::catalog;
use crate::error::{internal, invalid, not_found};

/// The directory of the logs. Its methods block on the disk.
#[derive(Debug, Clone)]
pub(crate) struct Store(PathBuf);

impl Store {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self(directory)
    }

    /// A new session that works in `cwd`. Nothing of it is on disk before its first turn.
    pub(crate) fn create(&self, cwd: PathBuf, preset: Option<String>) -> Result<Session, Error> {
        if !cwd.is_dir() {
            return Err(invalid(format_args!("cwd {} is not a directory", cwd.display())));
        }
        let mut directory = DirBuilder::new();
        directory.recursive(true).mode(0o700);
        directory
            .create(&self.0)
            .map_err(|error| internal(format_args!("cannot make {}: {error}", self.0.display())))?;
        let id = Uuid::new_v4();
        let header = SessionHeader {
            preset,
            ..SessionHeader::new(SessionId::new(id.to_string()), Some(cwd))
        };
        let file = SessionFile::create(self.path(id), header).map_err(internal)?;
        Ok(Session::persisted(file))
    }

    /// The session with this id, which works in `cwd`.
    pub(crate) fn load(&self, id: &str, cwd: &Path) -> Result<Session, Error> {
        // Only what this store names files by gets into a path.
        let known = Uuid::try_parse(id).ok().filter(|known| known.to_string() == id);
        let unknown = || not_found(format_args!("there is no session {id:.64}"));
        let path = self.path(known.ok_or_else(unknown)?);
        let file = SessionFile::open_session(path, &SessionId::new(id)).map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => unknown(),
            error => internal(error),
        })?;
        match file.header().cwd.as_deref() {
            Some(recorded) if recorded == cwd => Ok(Session::persisted(file)),
            recorded => Err(invalid(format_args!(
                "session {id} works in {}, not in {}",
                recorded.unwrap_or(Path::new("no directory")).display(),
                cwd.display()
            ))),
        }
    }

    /// What sessions there are.
    pub(crate) fn list(&self, request: &ListSessionsRequest) -> Result<ListSessionsResponse, Error> {
        catalog::page(&self.0, request)
    }

    fn path(&self, id: Uuid) -> PathBuf {
        self.0.join(format!("{id}.jsonl"))
    }
}
