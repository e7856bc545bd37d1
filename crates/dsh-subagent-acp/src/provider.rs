//! An agent as a provider: a process for each run.

use std::ffi::OsString;
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{ContentBlock, SessionId, TextContent};
use async_trait::async_trait;
use dsh_agent::{Agent, BoxError};
use dsh_llm::ContentBlock as Said;
use dsh_subagent::{
    Diagnostic, Run, RunFault, RunParts, RunResult, StartFailure, StartRequest, StopReason, SubagentProvider,
};
use dsh_subagent_process::{Product, ProductSpec, ReleaseError};
use dsh_subprocess::{Launcher, LeaderExit};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Permission;
use crate::conversation::{Conversation, Graces};
use crate::failure::{Category, Failure, Stage};

/// Stands before every error of this crate that a model may read.
const PREFIX: &str = "subagent-acp";

/// One agent, as it is configured.
pub(crate) struct Acp {
    pub(crate) name: String,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) permission: Permission,
    pub(crate) graces: Graces,
    pub(crate) launcher: Launcher,
}

#[async_trait]
impl SubagentProvider for Acp {
    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let StartRequest {
            prompt,
            parent,
            token,
            ..
        } = request;
        if token.is_cancelled() {
            return Err(aborted());
        }
        let task = admit(&prompt)?;
        let cwd = self.directory(&parent)?;
        let child = self.launch(&parent, cwd.clone(), &token).await?;
        let opened = tokio::select! {
            biased;
            () = token.cancelled() => None,
            opened = child.open(cwd) => Some(opened),
        };
        let session = match opened {
            Some(Ok(session)) if !token.is_cancelled() => session,
            Some(Err(failure)) if !token.is_cancelled() => {
                let released = child.end().await;
                return Err(self.unstarted(failure, released, child.exited()));
            }
            _ => return Err(with_release(aborted(), child.end().await, child.exited())),
        };
        let (name, released, stop) = (self.name.clone(), child.clone(), token.clone());
        Run::publish(RunParts {
            id: Uuid::new_v4().to_string(),
            local: None,
            parent,
            token,
            work: async move { Ok(take_turn(&name, child, session, task, &stop).await) },
            release: async move {
                let end = released.end().await;
                end.map_err(|error| not_released(error, released.exited()))
            },
        })
        .await
    }
}

impl Acp {
    /// A process that is spoken to, or nothing of it.
    async fn launch(
        &self,
        parent: &Agent,
        cwd: PathBuf,
        token: &CancellationToken,
    ) -> Result<Conversation, StartFailure> {
        let spec = ProductSpec {
            program: self.command.clone(),
            args: self.args.clone(),
            cwd,
            env: self.env.clone(),
            grace: self.graces.end,
        };
        let unable = |error: BoxError| Failure::new(Stage::Process, Category::Unknown).caused_by(error);
        let (product, streams) = match Product::start(&self.launcher, spec).await {
            Ok(started) => started,
            Err(_) if token.is_cancelled() => return Err(aborted()),
            Err(error) => return Err(self.unstarted(unable(error.into()), Ok(()), None)),
        };
        let started = (product.clone(), streams);
        let begun = Conversation::begin(&self.name, parent.scope(), started, self.permission, self.graces);
        match begun.await {
            Ok(child) => Ok(child),
            Err(failure) => {
                let released = product.release().await;
                Err(self.unstarted(failure, released, product.exited()))
            }
        }
    }

    /// Where it works: where it is configured to, or where its parent does.
    fn directory(&self, parent: &Agent) -> Result<PathBuf, StartFailure> {
        let cwd = self.cwd.as_deref().or(parent.cwd()).ok_or_else(|| {
            refused("no working directory for the child — configure cwd, or delegate from a parent session that has one")
        })?;
        if cwd.is_absolute() {
            return Ok(cwd.to_owned());
        }
        let cause = format!(
            "the working directory must be an absolute path: {}",
            cwd.display()
        );
        let failure = Failure::new(Stage::Process, Category::Unknown).caused_by(cause);
        Err(self.unstarted(failure, Ok(()), None))
    }

    /// What is said of a start that came to nothing.
    fn unstarted(
        &self,
        failure: Failure,
        released: Result<(), ReleaseError>,
        exited: Option<LeaderExit>,
    ) -> StartFailure {
        let name = &self.name;
        tracing::warn!("{PREFIX} \"{name}\": child start failed: {failure}");
        let told = refused(&failure.to_string());
        log_cause(name, &failure);
        with_release(told.caused_by(failure), released, exited)
    }
}

/// Has the task done, and says what came of it. The token is looked at first: a run that was cancelled is aborted, whatever
/// else has happened by then.
async fn take_turn(
    name: &str,
    child: Conversation,
    session: SessionId,
    task: Vec<ContentBlock>,
    token: &CancellationToken,
) -> RunResult {
    let ended = tokio::select! {
        biased;
        () = token.cancelled() => Ok(StopReason::Aborted),
        ended = child.prompt(session, task) => ended,
    };
    child.interrupt();
    let said = child.said().text;
    let output = Some(said).filter(|said| !said.is_empty()).map(Said::text);
    let (stop, diagnostic) = match ended {
        Ok(stop) => (stop, None),
        Err(failure) => {
            let stop = StopReason::Error;
            tracing::warn!("{PREFIX} \"{name}\": child run failed ({stop}): {failure}");
            log_cause(name, &failure);
            (stop, Diagnostic::new(failure.to_string()))
        }
    };
    RunResult::failed(stop, diagnostic).with_output(output.into_iter().collect())
}

/// The blocks of a task that can be done.
fn admit(prompt: &[Said]) -> Result<Vec<ContentBlock>, StartFailure> {
    let texts: Option<Vec<&str>> = prompt.iter().map(Said::as_text).collect();
    let texts = texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| refused("the one-shot task must contain only text blocks"))?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(refused("the one-shot task must not be empty"));
    }
    let blocks = texts
        .into_iter()
        .map(|text| ContentBlock::Text(TextContent::new(text)));
    Ok(blocks.collect())
}

fn refused(why: &str) -> StartFailure {
    StartFailure::new(format!("{PREFIX}: {why}"))
}

fn aborted() -> StartFailure {
    StartFailure::new("subagent request was aborted before the ACP child started")
}

fn with_release(
    failure: StartFailure,
    released: Result<(), ReleaseError>,
    exited: Option<LeaderExit>,
) -> StartFailure {
    match released {
        Ok(()) => failure,
        Err(error) => failure.with_rollback(not_released(error, exited).to_string()),
    }
}

fn not_released(error: ReleaseError, exited: Option<LeaderExit>) -> RunFault {
    let failure = Failure::new(Stage::Teardown, Category::Unknown).with_exit(exited);
    RunFault::new(format!("{PREFIX}: {failure}")).caused_by(error)
}

/// What is behind a failure may hold what only the log may.
fn log_cause(name: &str, failure: &Failure) {
    if let Some(cause) = std::error::Error::source(failure) {
        tracing::debug!("{PREFIX} \"{name}\": {cause}");
    }
}
