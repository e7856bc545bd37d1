//! Claude Code behind the seam: one process for each run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_subagent::{
    Diagnostic, Run, RunFault, RunParts, RunResult, StartFailure, StartRequest, StopReason, SubagentProvider,
};
use dsh_subagent_process::{Product, ProductSpec, ReleaseError};
use dsh_subprocess::{Launcher, LeaderExit};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::command;
use crate::config::PermissionMode;
use crate::conversation::{self, Conversation, Ended};
use crate::failure::{Category, Failure, PREFIX, Stage};

/// One way to run Claude Code.
pub(crate) struct ClaudeCode {
    pub(crate) name: String,
    pub(crate) launcher: Launcher,
    pub(crate) program: PathBuf,
    /// The whole environment of the product.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) mode: PermissionMode,
    pub(crate) grace: Duration,
}

#[async_trait]
impl SubagentProvider for ClaudeCode {
    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let StartRequest {
            prompt,
            parent,
            token,
            ..
        } = request;
        let task = command::task(&prompt).map_err(|error| StartFailure::new(error.to_string()))?;
        if token.is_cancelled() {
            return Err(aborted());
        }
        let cwd = parent.cwd().ok_or_else(|| {
            StartFailure::new(format!(
                "{PREFIX}: no working directory for the child — delegate from a parent session that has one"
            ))
        })?;
        let (product, conversation) = self.begin(cwd.to_owned(), &task, &token).await?;
        let (name, stop, spoken) = (self.name.clone(), token.clone(), Arc::clone(&conversation));
        let work = async move {
            // Given back with the end of this, whichever: the release reads on.
            let mut spoken = spoken.lock().await;
            tokio::select! {
                biased;
                () = stop.cancelled() => Ok(RunResult::aborted()),
                ended = spoken.listen() => Ok(result(&name, ended)),
            }
        };
        let release = async move {
            let released = conversation::release(&product, &conversation).await;
            released.map_err(|error| not_released(error, product.exited()))
        };
        Run::publish(RunParts {
            id: Uuid::new_v4().to_string(),
            local: None,
            parent,
            token,
            work,
            release,
        })
        .await
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
        let spec = ProductSpec {
            program: self.program.clone(),
            args: command::arguments(self.mode)
                .into_iter()
                .map(Into::into)
                .collect(),
            cwd,
            env: self.env.clone(),
            grace: self.grace,
        };
        let started = match Product::start(&self.launcher, spec).await {
            Ok(started) => started,
            Err(error) => {
                return Err(self.not_started(start_failure().caused_by(error), token, Ok(()), None));
            }
        };
        let product = started.0.clone();
        let mut conversation = Conversation::new(&self.name, started, self.mode, task, self.grace);
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
        let released = conversation::release(&product, &conversation).await;
        Err(self.not_started(failure, token, released, product.exited()))
    }

    /// What is said of a start that came to nothing: that it was cancelled if it was, whatever else went wrong, unless
    /// something of the product is left.
    fn not_started(
        &self,
        failure: Failure,
        token: &CancellationToken,
        released: Result<(), ReleaseError>,
        exited: Option<LeaderExit>,
    ) -> StartFailure {
        let name = &self.name;
        let message = format!("{PREFIX}: {failure}");
        let told = match released {
            Ok(()) if token.is_cancelled() => return aborted(),
            Ok(()) => StartFailure::new(message),
            Err(error) => {
                let fault = not_released(error, exited);
                tracing::error!(
                    error = &fault as &dyn std::error::Error,
                    "{PREFIX} \"{name}\": child not released"
                );
                StartFailure::new(message).with_rollback(fault.to_string())
            }
        };
        tracing::error!(
            error = &failure as &dyn std::error::Error,
            "{PREFIX} \"{name}\": child start failed"
        );
        told.caused_by(failure)
    }
}

fn aborted() -> StartFailure {
    StartFailure::new(format!("{PREFIX}: request was aborted before SDK startup"))
}

fn start_failure() -> Failure {
    Failure::new(Stage::QueryStart, Category::Unknown)
}

fn not_released(error: ReleaseError, exited: Option<LeaderExit>) -> RunFault {
    let failure = Failure::new(Stage::Teardown, Category::Unknown).with_exit(exited);
    RunFault::new(format!("{PREFIX}: {failure}")).caused_by(error)
}

fn result(name: &str, Ended { outcome, fact }: Ended) -> RunResult {
    let failure = match outcome {
        Ok(output) => {
            return RunResult {
                output,
                ..RunResult::completed("")
            };
        }
        Err(failure) => failure,
    };
    tracing::error!(
        error = &failure as &dyn std::error::Error,
        "{PREFIX} \"{name}\": child run failed (error)"
    );
    let lines: Vec<String> = [Some(failure.to_string()), fact].into_iter().flatten().collect();
    RunResult::failed(StopReason::Error, Diagnostic::new(lines.join("\n")))
}

#[cfg(test)]
mod tests;
