//! Codex as a provider: a process for each run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dsh_agent::{Agent, BoxError};
use dsh_llm::ContentBlock;
use dsh_subagent::{Run, RunParts, StartFailure, StartRequest, SubagentProvider};
use dsh_subagent_process::{Product, ProductSpec, Streams};
use dsh_subprocess::Launcher;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::PREFIX;
use crate::config::PermissionMode;
use crate::failure::{Failure, Stage};
use crate::link::Link;
use crate::run::{Job, Unstarted, greet, release, take_turn};

/// What makes Codex a server on its standard streams.
const ARGS: [&str; 2] = ["app-server", "--stdio"];

/// Codex, as it is configured.
pub(crate) struct Codex {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) mode: PermissionMode,
    pub(crate) grace: Duration,
    pub(crate) launcher: Launcher,
}

#[async_trait]
impl SubagentProvider for Codex {
    async fn start(&self, request: StartRequest) -> Result<Run, StartFailure> {
        let StartRequest {
            prompt,
            parent,
            token,
            ..
        } = request;
        if token.is_cancelled() {
            return Err(refused("request was aborted before app-server startup"));
        }
        let task = admit(&prompt)?;
        let cwd = directory(&parent)?;
        let launched = Product::start(&self.launcher, self.spec(&cwd)).await;
        let (product, streams) = launched.map_err(|error| {
            if token.is_cancelled() {
                aborted()
            } else {
                unstarted(&Failure::unknown(Stage::Initialize), error)
            }
        })?;
        let job = Job {
            provider: self.name.clone(),
            mode: self.mode,
            task,
        };
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
        let mut link = Link::new(&self.name, product.clone(), streams, self.grace);
        let greeted = greet(&mut link, cwd, self.mode, &token).await;
        let (left, rest) = oneshot::channel();
        let thread = match greeted {
            Ok(thread) if !token.is_cancelled() => thread,
            failed => {
                // Nobody but the release hears it.
                let _ = left.send(link.leave().await);
                let released = release(&product, rest).await;
                let failure = match failed {
                    Err(Unstarted::Failed(failure, cause)) if !token.is_cancelled() => {
                        unstarted(&failure, cause)
                    }
                    Ok(_) | Err(Unstarted::Failed(..) | Unstarted::Cancelled) => aborted(),
                };
                return Err(match released {
                    Ok(()) => failure,
                    Err(fault) => failure.with_rollback(fault.to_string()),
                });
            }
        };
        let cancelled = token.clone();
        Run::publish(RunParts {
            id: Uuid::new_v4().to_string(),
            local: None,
            parent,
            token,
            work: async move {
                let result = take_turn(&mut link, thread, &job, &cancelled).await;
                // A release that is over hears it no more.
                let _ = left.send(link.leave().await);
                Ok(result)
            },
            release: async move { release(&product, rest).await },
        })
        .await
    }
}

/// The texts of a task that Codex can be given.
fn admit(prompt: &[ContentBlock]) -> Result<Vec<String>, StartFailure> {
    let texts: Option<Vec<&str>> = prompt.iter().map(ContentBlock::as_text).collect();
    let texts = texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| refused("the one-shot task must contain only text blocks"))?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(refused("the one-shot task must not be empty"));
    }
    Ok(texts.into_iter().map(str::to_owned).collect())
}

/// Where it works: where its parent does. Whether that can be entered is seen by the launcher.
fn directory(parent: &Agent) -> Result<String, StartFailure> {
    let cwd = parent.cwd().ok_or_else(|| {
        refused("no working directory for the child — delegate from a parent session that has one")
    })?;
    let usable = cwd.to_str().filter(|_| cwd.is_absolute());
    usable
        .map(str::to_owned)
        .ok_or_else(|| unstarted(&Failure::unknown(Stage::Initialize), unusable(cwd)))
}

fn unusable(cwd: &Path) -> String {
    format!(
        "the working directory must be an absolute path in UTF-8: {}",
        cwd.display()
    )
}

fn refused(why: &str) -> StartFailure {
    StartFailure::new(format!("{PREFIX}{why}"))
}

fn aborted() -> StartFailure {
    refused("request was aborted before run publication")
}

fn unstarted(failure: &Failure, cause: impl Into<BoxError>) -> StartFailure {
    StartFailure::new(format!("{PREFIX}{failure}")).caused_by(cause)
}
