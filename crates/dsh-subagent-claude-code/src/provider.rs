//! Claude Code behind the seam: one process for each run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_subagent::{
    Run, RunFault, RunParts, RunResult, StartFailure, StartRequest, StopReason, SubagentProvider,
};
use dsh_subagent_process::{Failure, Product, ProductSpec, Reports};
use dsh_subprocess::Launcher;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::command;
use crate::config::PermissionMode;
use crate::conversation::{Conversation, Ended};
use crate::failure::{Category, Stage, failure};

/// One way to run Claude Code.
pub(crate) struct ClaudeCode {
    pub(crate) reports: Reports,
    pub(crate) launcher: Launcher,
    pub(crate) hurry: CancellationToken,
    pub(crate) program: PathBuf,
    /// The whole environment of the product.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) mode: PermissionMode,
    pub(crate) grace: Duration,
}

#[async_trait]
impl SubagentProvider for ClaudeCode {
    fn product(&self) -> Option<&str> {
        Some("Claude Code")
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let StartRequest {
            prompt,
            parent,
            token,
            ..
        } = request;
        let task = command::task(&prompt).map_err(|error| self.reports.refused(error))?;
        if token.is_cancelled() {
            return Err(self.aborted());
        }
        let remedy = "delegate from a parent session that has one";
        let cwd = self.reports.directory(parent.cwd(), remedy, &start_failure())?;
        let (product, conversation) = self.begin(cwd.to_owned(), &task, &token).await?;
        let (reports, stop, spoken) = (self.reports.clone(), token.clone(), Arc::clone(&conversation));
        let work = async move {
            // Given back with the end of this, whichever: the release reads on.
            let mut spoken = spoken.lock().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => Ok(RunResult::aborted()),
                ended = spoken.listen() => Ok(result(&reports, ended)),
            }
        };
        let reports = self.reports.clone();
        let release = async move { release(&product, &conversation, &reports).await };
        Run::publish(RunParts::remote(parent, token, work, release)).await
    }
}

impl ClaudeCode {
    /// A product that is up, or nothing of it.
    async fn begin(
        &self,
        cwd: PathBuf,
        task: &str,
        token: &CancellationToken,
    ) -> Result<(Product, Arc<Mutex<Conversation>>), StartFailure> {
        let arguments = command::arguments(self.mode).into_iter();
        let spec = ProductSpec {
            program: self.program.clone(),
            args: arguments.map(Into::into).collect(),
            cwd,
            env: self.env.clone(),
            grace: self.grace,
            hurry: self.hurry.clone(),
        };
        let started = match Product::start(&self.launcher, spec).await {
            Ok(started) => started,
            Err(_) if token.is_cancelled() => return Err(self.aborted()),
            Err(error) => return Err(self.reports.not_spawned(&start_failure(), error)),
        };
        let product = started.0.clone();
        let name = self.reports.provider();
        let mut conversation = Conversation::new(name, started, self.mode, task, self.grace);
        let up = tokio::select! {
            biased;
            () = token.cancelled() => Err(start_failure()),
            up = conversation.until_up() => up,
        };
        let conversation = Arc::new(Mutex::new(conversation));
        let failure = match up {
            Ok(()) => return Ok((product, conversation)),
            Err(failure) => failure,
        };
        let released = release(&product, &conversation, &self.reports).await;
        Err(self.not_started(failure, token, released))
    }

    /// What is said of a start that came to nothing: that it was cancelled if it was, whatever else went wrong, unless
    /// something of the product is left.
    fn not_started(
        &self,
        failure: Failure,
        token: &CancellationToken,
        released: Result<(), RunFault>,
    ) -> StartFailure {
        match released {
            Ok(()) if token.is_cancelled() => self.aborted(),
            released => {
                let told = self.reports.start_failed(failure);
                self.reports.with_release(told, released)
            }
        }
    }

    fn aborted(&self) -> StartFailure {
        self.reports.refused("request was aborted before SDK startup")
    }
}

fn start_failure() -> Failure {
    failure(Stage::QueryStart, Category::Unknown)
}

/// Ends a product, whatever its conversation was at.
async fn release(
    product: &Product,
    conversation: &Mutex<Conversation>,
    reports: &Reports,
) -> Result<(), RunFault> {
    let reading = async { conversation.lock().await.drain().await };
    let released = product.release_while(reading).await;
    released.map_err(|error| reports.unreleased(error, product.exited()))
}

fn result(reports: &Reports, Ended { outcome, fact }: Ended) -> RunResult {
    match outcome {
        Ok(output) => RunResult::ended(StopReason::Completed).with_output(output),
        Err(failure) => reports.run_failed(StopReason::Error, &failure, fact.as_deref()),
    }
}

#[cfg(test)]
mod tests;
