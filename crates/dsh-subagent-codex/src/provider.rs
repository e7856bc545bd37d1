//! Codex as a provider: a process for each run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::Agent;
use dsh_subagent::{Run, RunFault, RunParts, StartFailure, StartRequest, SubagentProvider};
use dsh_subagent_process::{Product, ProductSpec, Reports, Streams, texts};
use dsh_subprocess::Launcher;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::config::PermissionMode;
use crate::failure::{Category, Stage, failure};
use crate::link::{Link, Rest};
use crate::run::{Job, Unstarted, greet, take_turn};

/// What makes Codex a server on its standard streams.
const ARGS: [&str; 2] = ["app-server", "--stdio"];

/// Codex, as it is configured.
pub(crate) struct Codex {
    pub(crate) reports: Reports,
    pub(crate) program: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) mode: PermissionMode,
    pub(crate) grace: Duration,
    pub(crate) launcher: Launcher,
    pub(crate) hurry: CancellationToken,
}

#[async_trait]
impl SubagentProvider for Codex {
    fn product(&self) -> Option<&str> {
        Some("Codex")
    }

    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let StartRequest {
            prompt,
            parent,
            token,
            ..
        } = request;
        if token.is_cancelled() {
            return Err(self
                .reports
                .refused("request was aborted before app-server startup"));
        }
        let task = texts(&prompt).map_err(|error| self.reports.refused(error))?;
        let job = Job {
            reports: self.reports.clone(),
            mode: self.mode,
            task: task.into_iter().map(str::to_owned).collect(),
        };
        let cwd = self.directory(&parent)?;
        let launched = Product::start(&self.launcher, self.spec(&cwd)).await;
        let (product, streams) = launched.map_err(|error| {
            if token.is_cancelled() {
                self.aborted()
            } else {
                self.reports
                    .not_spawned(&failure(Stage::Initialize, Category::UNKNOWN), error)
            }
        })?;
        self.converse(product, streams, cwd, job, parent, token).await
    }
}

impl Codex {
    fn spec(&self, cwd: &str) -> ProductSpec {
        ProductSpec {
            program: self.program.clone(),
            args: ARGS.map(OsString::from).to_vec(),
            cwd: cwd.into(),
            env: self.env.clone(),
            grace: self.grace,
            hurry: self.hurry.clone(),
        }
    }

    /// From a running process to a published run, or to nothing.
    async fn converse(
        &self,
        product: Product,
        streams: Streams,
        cwd: String,
        job: Job,
        parent: Arc<Agent>,
        token: CancellationToken,
    ) -> Result<Run, StartFailure> {
        let mut link = Link::new(self.reports.provider(), product.clone(), streams, self.grace);
        let greeted = greet(&mut link, cwd, self.mode, &token).await;
        let (left, rest) = oneshot::channel();
        let thread = match greeted {
            Ok(thread) if !token.is_cancelled() => thread,
            failed => {
                // Nobody but the release hears it.
                let _ = left.send(link.leave().await);
                let released = release(&product, rest, &self.reports).await;
                let told = match failed {
                    Err(Unstarted::Failed(failure)) if !token.is_cancelled() => {
                        self.reports.start_failed(failure)
                    }
                    Ok(_) | Err(Unstarted::Failed(_) | Unstarted::Cancelled) => self.aborted(),
                };
                return Err(self.reports.with_release(told, released));
            }
        };
        let (stop, reports) = (token.clone(), job.reports.clone());
        let work = async move {
            let result = take_turn(&mut link, thread, &job, &stop).await;
            // A release that is over hears it no more.
            let _ = left.send(link.leave().await);
            Ok(result)
        };
        let release = async move { release(&product, rest, &reports).await };
        Run::publish(RunParts::remote(parent, token, work, release)).await
    }

    /// Where it works: where its parent does.
    fn directory(&self, parent: &Agent) -> Result<String, StartFailure> {
        let failure = failure(Stage::Initialize, Category::UNKNOWN);
        let remedy = "delegate from a parent session that has one";
        let cwd = self.reports.directory(parent.cwd(), remedy, &failure)?;
        // It goes into a frame.
        cwd.to_str().map(str::to_owned).ok_or_else(|| {
            let why = format!("the working directory must be UTF-8: {}", cwd.display());
            self.reports.not_spawned(&failure, why)
        })
    }

    fn aborted(&self) -> StartFailure {
        self.reports.refused("request was aborted before run publication")
    }
}

/// Ends the app server with all that it started, and reads meanwhile what it still writes.
async fn release(
    product: &Product,
    rest: oneshot::Receiver<Rest>,
    reports: &Reports,
) -> Result<(), RunFault> {
    let reading = async {
        if let Ok(rest) = rest.await {
            rest.drain().await;
        }
    };
    let released = product.release_while(reading).await;
    released.map_err(|error| reports.unreleased(error, product.exited()))
}
