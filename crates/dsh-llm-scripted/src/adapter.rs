//! The adapter of one script.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use dsh_llm::{ModelAdapter, ModelError, ModelMessage, ModelRequest, ModelStream, text_of};
use dsh_session::Event;
use tokio_util::sync::CancellationToken;

use crate::{ScriptError, ScriptMisfit, decode::decode, replay, script::Turn};
use stream::ScriptedStream;

mod stream;

/// How long a turn waits for its file at most.
pub const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// How much of what the model was told is shown when it is not what was expected, in characters.
const SHOWN: usize = 500;

/// Answers calls with the turns of a script, in order.
pub struct ScriptedAdapter {
    name: String,
    turns: Vec<Turn>,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    calls: usize,
    /// Why calls were refused that the script has no answer to.
    refused: Vec<String>,
}

impl ScriptedAdapter {
    /// A script that is here already. The name is for messages.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Wrong`] with all faults.
    pub fn from_json(name: impl Into<String>, json: &str) -> Result<Self, ScriptError> {
        let name = name.into();
        match decode(json) {
            Ok(turns) => Ok(Self::new(name, turns)),
            Err(faults) => Err(ScriptError::Wrong { name, faults }),
        }
    }

    /// The script in a file.
    ///
    /// # Errors
    ///
    /// A [`ScriptError`] when the file cannot be read or is no script.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        let json = std::fs::read_to_string(path).map_err(|source| ScriptError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::from_json(path.display().to_string(), &json)
    }

    /// What the model said in a recorded session. The name is for messages.
    pub fn from_session_log(name: impl Into<String>, events: &[Event]) -> Self {
        Self::new(name.into(), replay::turns(events))
    }

    fn new(name: String, turns: Vec<Turn>) -> Self {
        Self {
            name,
            turns,
            progress: Mutex::default(),
        }
    }

    /// How many turns were not asked for yet.
    pub fn unused(&self) -> usize {
        self.turns.len().saturating_sub(self.lock().calls)
    }

    /// Whether the calls so far are just those that the script was written for.
    ///
    /// # Errors
    ///
    /// A [`ScriptMisfit`] that tells calls that were refused and turns that were not asked for.
    pub fn finish(&self) -> Result<(), ScriptMisfit> {
        let mut problems = self.lock().refused.clone();
        let all = self.turns.len();
        match self.unused() {
            0 => {}
            1 => problems.push(format!("turns[{}] was never asked for", all - 1)),
            unused => problems.push(format!(
                "turns[{}] to turns[{}] were never asked for",
                all - unused,
                all - 1
            )),
        }
        if problems.is_empty() {
            return Ok(());
        }
        let name = self.name.clone();
        Err(ScriptMisfit { name, problems })
    }

    /// Takes the next turn.
    fn advance(&self) -> Result<(usize, &Turn), ModelError> {
        let index = {
            let mut progress = self.lock();
            progress.calls += 1;
            progress.calls - 1
        };
        match self.turns.get(index) {
            Some(turn) => Ok((index, turn)),
            None => Err(self.refuse(
                "SCRIPT_EXHAUSTED",
                format!("call {} has no turn: there are {}", index + 1, self.turns.len()),
            )),
        }
    }

    fn refuse(&self, code: &str, problem: String) -> ModelError {
        let error = ModelError::lasting(code, format!("script {}: {problem}", self.name));
        self.lock().refused.push(problem);
        error
    }

    fn expect(&self, index: usize, turn: &Turn, request: &ModelRequest) -> Result<(), ModelError> {
        let told = told_last(request);
        match turn.expect.iter().find(|expected| !told.contains(*expected)) {
            None => Ok(()),
            Some(missing) => {
                let shown: String = told.chars().take(SHOWN).collect();
                let problem = format!(
                    "turns[{index}] expects {missing:?}, but call {} was told {shown:?}",
                    index + 1
                );
                Err(self.refuse("SCRIPT_MISMATCH", problem))
            }
        }
    }

    async fn wait_for(&self, index: usize, file: &Path) -> Result<(), ModelError> {
        match tokio::time::timeout(WAIT_LIMIT, exists(file)).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.refuse(
                "SCRIPT_TIMEOUT",
                format!(
                    "turns[{index}] waited {} s for {}, which never came",
                    WAIT_LIMIT.as_secs(),
                    file.display()
                ),
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ModelAdapter for ScriptedAdapter {
    async fn send(
        &self,
        request: Arc<ModelRequest>,
        token: CancellationToken,
    ) -> Result<Box<dyn ModelStream>, ModelError> {
        let (index, turn) = self.advance()?;
        self.expect(index, turn, &request)?;
        if let Some(file) = &turn.wait_for_file {
            // Both ready: the cancellation was first, or nobody can tell.
            tokio::select! {
                biased;
                () = token.cancelled() => return Err(ModelError::lasting("ABORTED", "the request was cancelled")),
                waited = self.wait_for(index, file) => waited?,
            }
        }
        ScriptedStream::begin(turn.clone(), token)
    }
}

impl fmt::Debug for ScriptedAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedAdapter")
            .field("name", &self.name)
            .field("unused", &self.unused())
            .finish_non_exhaustive()
    }
}

/// The text of all that came after the model's last answer.
fn told_last(request: &ModelRequest) -> String {
    let messages = request.messages.iter().rev();
    let new: Vec<_> = messages
        .map_while(|message| match message {
            ModelMessage::User { content } | ModelMessage::ToolResult { content, .. } => {
                Some(text_of(content))
            }
            ModelMessage::Assistant { .. } => None,
        })
        .collect();
    let in_order: Vec<_> = new.into_iter().rev().collect();
    in_order.join("\n")
}

/// Looks again and again, less and less often.
async fn exists(file: &Path) {
    let mut pause = Duration::from_millis(1);
    while !file.exists() {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
