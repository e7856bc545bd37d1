//! An agent as a provider: a process for each run.

use std::ffi::OsString;
use std::path::PathBuf;

use agent_client_protocol::v1::schema::{ContentBlock, SessionId, TextContent};
use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_llm::ContentBlock as Said;
use dsh_subagent::{
    Run, RunFault, RunParts, RunResult, StartFailure, StartRequest, StopReason, SubagentProvider,
};
use dsh_subagent_process::{Failure, Product, ProductSpec, Reports, texts};
use dsh_subprocess::Launcher;
use tokio_util::sync::CancellationToken;

use crate::config::Permission;
use crate::conversation::{Conversation, Graces};
use crate::failure::{Category, Stage, failure};

/// One agent, as it is configured.
pub(crate) struct Acp {
    pub(crate) reports: Reports,
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) permission: Permission,
    pub(crate) graces: Graces,
    pub(crate) launcher: Launcher,
    pub(crate) hurry: CancellationToken,
}

#[async_trait]
impl SubagentProvider for Acp {
    fn product(&self) -> Option<&str> {
        Some(self.reports.provider())
    }

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
        let task = texts(&prompt).map_err(|error| self.reports.refused(error))?;
        let task = task
            .into_iter()
            .map(|text| ContentBlock::Text(TextContent::new(text)));
        let (task, cwd) = (task.collect(), self.directory(&parent)?);
        let child = self.launch(&parent, cwd.clone(), &token).await?;
        let opened = tokio::select! {
            biased;
            () = token.cancelled() => None,
            opened = child.open(cwd) => Some(opened),
        };
        let session = match opened {
            Some(Ok(Some(session))) if !token.is_cancelled() => session,
            failed => {
                let released = end(&child, &self.reports).await;
                let told = match failed {
                    Some(Err(failure)) if !token.is_cancelled() => self.reports.start_failed(failure),
                    Some(Ok(None)) if !token.is_cancelled() => {
                        self.reports.refused("ACP child published without a session id")
                    }
                    Some(_) | None => aborted(),
                };
                return Err(self.reports.with_release(told, released));
            }
        };
        let (reports, spoken, stop) = (self.reports.clone(), child.clone(), token.clone());
        let work = async move { Ok(take_turn(&reports, spoken, session, task, &stop).await) };
        let reports = self.reports.clone();
        let release = async move { end(&child, &reports).await };
        Run::publish(RunParts::remote(parent, token, work, release)).await
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
            hurry: self.hurry.clone(),
        };
        let (product, streams) = match Product::start(&self.launcher, spec).await {
            Ok(started) => started,
            Err(_) if token.is_cancelled() => return Err(aborted()),
            Err(error) => return Err(self.reports.not_spawned(&unable(), error)),
        };
        let (name, started) = (self.reports.provider(), (product.clone(), streams));
        let begun = Conversation::begin(name, parent.scope(), started, self.permission, self.graces);
        match begun.await {
            Ok(child) => Ok(child),
            Err(failure) => {
                let told = self.reports.start_failed(failure);
                let released = product.release().await;
                let released = released.map_err(|error| self.reports.unreleased(error, product.exited()));
                Err(self.reports.with_release(told, released))
            }
        }
    }

    /// Where it works: where it is configured to, or where its parent does.
    fn directory(&self, parent: &Agent) -> Result<PathBuf, StartFailure> {
        let cwd = self.cwd.as_deref().or(parent.cwd());
        let remedy = "configure cwd, or delegate from a parent session that has one";
        Ok(self.reports.directory(cwd, remedy, &unable())?.to_owned())
    }
}

/// Has the task done, and says what came of it. The token is looked at first: a run that was cancelled is aborted, whatever
/// else has happened by then.
async fn take_turn(
    reports: &Reports,
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
    let result = match ended {
        Ok(stop) => RunResult::ended(stop),
        Err(failure) => reports.run_failed(StopReason::Error, &failure, None),
    };
    result.with_output(output.into_iter().collect())
}

/// Ends the agent, and everything that it started.
async fn end(child: &Conversation, reports: &Reports) -> Result<(), RunFault> {
    let ended = child.end().await;
    ended.map_err(|error| reports.unreleased(error, child.exited()))
}

fn unable() -> Failure {
    failure(Stage::Process, Category::Unknown)
}

fn aborted() -> StartFailure {
    StartFailure::new("subagent request was aborted before the ACP child started")
}
