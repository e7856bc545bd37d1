//! One run: a child that was published, and the duty to release it.
//!
//! # Invariants
//!
//! 1. The result is set once: by the child's work, or, when that is still not over after the release, as aborted.
//! 2. The release happens once: whoever asks first begins it, everybody awaits it, and the end of the parent is one who asks.
//! 3. The release never waits for the work; the work ends because what it works with is gone.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use dsh_agent::Agent;
use dsh_scope::{EffectHandle, Scope, contain_future};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{RunFault, RunResult, StartFailure};

/// A published child. Whoever started it has to [dispose](Self::dispose) it; clones are one run.
///
/// One that nobody disposes ends with the scope of the agent that delegated.
#[derive(Clone)]
pub struct Run {
    inner: Arc<Inner>,
}

/// What a provider makes a [`Run`] of.
pub struct RunParts<Work, Release> {
    /// The child's session id if it is in this process; else a new random one, never one that a product gave.
    pub id: String,
    /// The child, if it is in this process.
    pub local: Option<Arc<Agent>>,
    /// Who delegated.
    pub parent: Arc<Agent>,
    /// The token of the request. The release cancels it.
    pub token: CancellationToken,
    /// What the child does, to its result. It looks at the token, and is aborted as soon as that is cancelled.
    pub work: Work,
    /// Takes everything down that belongs to the child, and returns when it was seen gone. It runs beside the work.
    pub release: Release,
}

/// A run that is disposed when this is dropped, because who holds it may vanish at any await.
#[must_use = "dropping it disposes the run"]
pub struct RunGuard {
    run: Run,
    armed: bool,
}

type Outcome = Result<RunResult, RunFault>;

struct Inner {
    id: String,
    local: Option<Arc<Agent>>,
    scope: Scope,
    token: CancellationToken,
    outcome: watch::Receiver<Option<Outcome>>,
    disposal: EffectHandle,
    released: Arc<OnceLock<Result<(), RunFault>>>,
}

impl Run {
    /// Publishes a child: its work begins.
    ///
    /// # Errors
    ///
    /// When the agent that delegated is being disposed. Everything of the child was released then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropped in the middle of a refusal, the release is not finished.
    pub async fn publish<Work, Release>(parts: RunParts<Work, Release>) -> Result<Self, StartFailure>
    where
        Work: Future<Output = Result<RunResult, RunFault>> + Send + 'static,
        Release: Future<Output = Result<(), RunFault>> + Send + 'static,
    {
        let RunParts {
            id,
            local,
            parent,
            token,
            work,
            release,
        } = parts;
        let scope = parent.scope();
        let (settled, outcome) = watch::channel(None);
        let (gone, released) = (CancellationToken::new(), Arc::new(OnceLock::new()));
        let over = gone.clone();
        // Before the effect: a closing scope ends the newest first, and the release is what ends the work.
        let worker = scope.spawn(format!("subagent {id}"), async move {
            let outcome = tokio::select! {
                biased;
                outcome = contain_future(work) => {
                    outcome.unwrap_or_else(|panicked| Err(RunFault::new(panicked.to_string())))
                }
                () = over.cancelled() => Ok(RunResult::aborted()),
            };
            settled.send_replace(Some(outcome));
        });
        let (cancelled, told) = (token.clone(), Arc::clone(&released));
        let release = async move {
            cancelled.cancel();
            let how = contain_future(release)
                .await
                .unwrap_or_else(|panicked| Err(RunFault::new(panicked.to_string())));
            if let Err(fault) = &how {
                tracing::error!(error = fault as &dyn std::error::Error, "subagent not released");
            }
            // The only one who sets it.
            let _ = told.set(how);
            gone.cancel();
        };
        let refused =
            |error: String| StartFailure::new(format!("subagent owner disposed during setup: {error}"));
        let disposal = match (
            worker,
            scope.effect(format!("release of subagent {id}"), || release),
        ) {
            (Ok(_), Ok(disposal)) => disposal,
            (_, Err(closed)) => {
                let error = closed.to_string();
                (closed.rejected)().await;
                return Err(match released.get() {
                    Some(Err(fault)) => refused(error).with_rollback(fault.to_string()),
                    Some(Ok(())) | None => refused(error),
                });
            }
            // A scope that took the later one took the earlier one.
            (Err(closed), Ok(disposal)) => {
                disposal.dispose().await;
                return Err(refused(closed.to_string()));
            }
        };
        let inner = Inner {
            id,
            local,
            scope: scope.clone(),
            token,
            outcome,
            disposal,
            released,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The id of the child: of its session, if it is in this process, else a random one.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The child, if it is in this process.
    pub fn local_agent(&self) -> Option<&Arc<Agent>> {
        self.inner.local.as_ref()
    }

    /// Asks for the end: the result is there soon, the child gone only after [`dispose`](Self::dispose).
    pub fn cancel(&self) {
        self.inner.token.cancel();
    }

    /// Has the run disposed, in the background, when the guard is dropped.
    pub fn drop_guard(self) -> RunGuard {
        RunGuard {
            run: self,
            armed: true,
        }
    }

    /// What came of it. A child that failed is a result, too.
    ///
    /// # Errors
    ///
    /// A [`RunFault`] when there is none: the machinery around the child failed.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn result(&self) -> Result<RunResult, RunFault> {
        let mut outcome = self.inner.outcome.clone();
        match outcome.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(outcome)) => outcome.clone(),
            Ok(None) | Err(_) => Err(RunFault::new("the runtime ended before the run")),
        }
    }

    /// Cancels it if it still runs, and returns when nothing of it is left. Every call awaits the one release.
    ///
    /// # Errors
    ///
    /// A [`RunFault`] when something of it is left, or may be. How the child fared is no matter of this.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// The release runs in a task of its own: dropping this future only stops waiting.
    pub async fn dispose(&self) -> Result<(), RunFault> {
        self.inner.disposal.dispose().await;
        match self.inner.released.get() {
            Some(how) => how.clone(),
            None => Err(RunFault::new("the runtime ended before the release of the run")),
        }
    }
}

impl<Work, Release> RunParts<Work, Release> {
    /// A child that is not in this process, under a new random id.
    pub fn remote(parent: Arc<Agent>, token: CancellationToken, work: Work, release: Release) -> Self {
        Self {
            id: Uuid::new_v4().to_string(),
            local: None,
            parent,
            token,
            work,
            release,
        }
    }
}

impl RunGuard {
    /// Gives the run back, and the duty to dispose it with it.
    pub fn disarm(mut self) -> Run {
        self.armed = false;
        self.run.clone()
    }
}

impl Deref for RunGuard {
    type Target = Run;

    fn deref(&self) -> &Run {
        &self.run
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if !self.armed || self.run.inner.released.get().is_some() {
            return;
        }
        self.run.cancel();
        let run = self.run.clone();
        let release = async move {
            // A release that failed is in the log.
            let _ = run.dispose().await;
        };
        // A parent that is being disposed refuses this, and releases its runs itself.
        let _ = self
            .run
            .inner
            .scope
            .spawn("disposal of a subagent that nobody holds", release);
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RunGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run.fmt(f)
    }
}
