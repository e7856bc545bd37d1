//! The adapter for which a model is a file.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use dsh_llm::{ModelAdapter, ModelError, ModelRequest, ModelStream};
use dsh_session::{Session, SessionFile};
use tokio_util::sync::CancellationToken;

use crate::{ScriptError, ScriptMisfit, ScriptedAdapter};

/// Answers for every model whose name is the path of a script, or of a recorded session if it ends in `.jsonl`. Cloning
/// gives another handle to the same scripts.
///
/// A file is read once, at [`load`](Self::load) or with its first request; a request for a file that is no script fails
/// with code `SCRIPT_INVALID`.
#[derive(Clone, Default)]
pub struct ScriptedModels {
    scripts: Arc<Mutex<HashMap<String, Arc<ScriptedAdapter>>>>,
}

impl ScriptedModels {
    /// Without scripts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The adapter of a model. Reads its file if nobody has.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] when the file cannot be read or is no script.
    pub fn load(&self, model: &str) -> Result<Arc<ScriptedAdapter>, ScriptError> {
        if let Some(known) = self.lock().get(model) {
            return Ok(known.clone());
        }
        let read = Arc::new(read(model)?);
        // Another call may have read it meanwhile: there is one place in a script, so the first one counts.
        Ok(self.lock().entry(model.to_owned()).or_insert(read).clone())
    }

    /// Whether every script that was read fits the calls that were made.
    ///
    /// # Errors
    ///
    /// The [`ScriptMisfit`] of each that does not, by name.
    pub fn finish(&self) -> Result<(), Vec<ScriptMisfit>> {
        let scripts = self.lock();
        let mut misfits: Vec<_> = scripts
            .values()
            .filter_map(|script| script.finish().err())
            .collect();
        if misfits.is_empty() {
            return Ok(());
        }
        misfits.sort_by(|one, other| one.name.cmp(&other.name));
        Err(misfits)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ScriptedAdapter>>> {
        self.scripts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelAdapter for ScriptedModels {
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        let (models, model) = (self.clone(), request.header.model.clone());
        let script = tokio::task::spawn_blocking(move || models.load(&model))
            .await
            .map_err(|_| ModelError::lasting("ABORTED", "the runtime is shutting down"))?
            .map_err(|error| ModelError::lasting("SCRIPT_INVALID", error.to_string()))?;
        script.send(request, token).await
    }
}

impl fmt::Debug for ScriptedModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

fn read(model: &str) -> Result<ScriptedAdapter, ScriptError> {
    let path = Path::new(model);
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        return ScriptedAdapter::from_file(path);
    }
    let session = Session::persisted(SessionFile::open(path)?);
    Ok(ScriptedAdapter::from_session_log(model, &session.events()))
}
