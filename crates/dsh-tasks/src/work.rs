//! What a producer hands over.

use std::{fmt, pin::Pin, sync::Arc};

use dsh_agent::Agent;
use dsh_output::OutputSource;

use crate::{
    core::Admission,
    error::BoxError,
    outcome::{CancelRequest, Outcome, Survivor},
};

/// A boxed future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What is to be started, for whom.
pub struct StartSpec {
    pub(crate) kind: Arc<str>,
    pub(crate) label: Arc<str>,
    pub(crate) owner: Option<Arc<Agent>>,
    pub(crate) output_limit_bytes: Option<u64>,
    pub(crate) admission: Admission,
    pub(crate) run: Run,
}

pub(crate) type Run = Box<dyn FnOnce() -> Result<Work, BoxError> + Send>;

/// Work under way: what a producer hands to the registry.
pub struct Work {
    pub(crate) done: BoxFuture<Outcome>,
    pub(crate) hooks: Hooks,
}

type SurvivorsHook = Box<dyn Fn() -> Vec<Survivor> + Send + Sync>;
type CancelHook = Box<dyn Fn(&CancelRequest) -> Result<(), BoxError> + Send + Sync>;

/// The part of it that is kept with the record.
pub(crate) struct Hooks {
    pub(crate) cancel: CancelHook,
    pub(crate) output: Option<Arc<dyn OutputSource>>,
    pub(crate) live_detail: Option<Box<dyn Fn() -> Option<String> + Send + Sync>>,
    pub(crate) survivors: Option<SurvivorsHook>,
}

impl StartSpec {
    /// Work of a kind, with a label that says what it does (the command, the description of a delegation), started by
    /// `run`. It belongs to nobody unless [`owned_by`](Self::owned_by) says whose it is.
    ///
    /// `run` is called at most once, and only when nothing but its own failure can keep the task from existing.
    pub fn new(
        kind: impl Into<Arc<str>>,
        label: impl Into<Arc<str>>,
        run: impl FnOnce() -> Result<Work, BoxError> + Send + 'static,
    ) -> Self {
        Self {
            kind: kind.into(),
            label: label.into(),
            owner: None,
            output_limit_bytes: None,
            admission: Admission::Limited,
            run: Box::new(run),
        }
    }

    /// Gives the task an owner: only its session may use it, and it ends with this very agent.
    #[must_use]
    pub fn owned_by(mut self, owner: Arc<Agent>) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Caps every model-facing reply about the task. The registry checks and hands on the number; tools apply it.
    #[must_use]
    pub fn output_limit_bytes(mut self, bytes: u64) -> Self {
        self.output_limit_bytes = Some(bytes);
        self
    }

    /// Says that the work runs already and `run` only hands it over. Such a start is not held to the owner's limit,
    /// since a refusal would leave the work without anybody to answer for it; it counts, so the next start is refused.
    #[must_use]
    pub fn already_running(mut self) -> Self {
        self.admission = Admission::Unrefusable;
        self
    }
}

impl Work {
    /// Work that is over when `done` is, and that can be asked to end.
    ///
    /// `done` must resolve when everything the work used was released (not when its end was decided), and must resolve
    /// after a `cancel` that returned `Ok`. A panic of it is a breach of this contract and ends the task as failed.
    ///
    /// `cancel` must return soon, may be called any number of times and from any thread, also after the end.
    pub fn new(
        done: impl Future<Output = Outcome> + Send + 'static,
        cancel: impl Fn(&CancelRequest) -> Result<(), BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            done: Box::pin(done),
            hooks: Hooks {
                cancel: Box::new(cancel),
                output: None,
                live_detail: None,
                survivors: None,
            },
        }
    }

    /// Makes the output readable while the work runs: the task is of a stream kind. Without a source the output is
    /// what the [`Outcome`] carries.
    ///
    /// The source must not read its own task through the registry: one read of a task waits for the other.
    #[must_use]
    pub fn output(mut self, source: Arc<dyn OutputSource>) -> Self {
        self.hooks.output = Some(source);
        self
    }

    /// Says in a few words where the work is (`shell exited with code 0, 2 processes running`), for status lines.
    #[must_use]
    pub fn live_detail(mut self, detail: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.hooks.live_detail = Some(Box::new(detail));
        self
    }

    /// Names the processes of the work that are alive right now. It is asked when a disposal gives the task up, so that
    /// what may be orphaned is named.
    #[must_use]
    pub fn survivors(mut self, survivors: impl Fn() -> Vec<Survivor> + Send + Sync + 'static) -> Self {
        self.hooks.survivors = Some(Box::new(survivors));
        self
    }
}

impl fmt::Debug for StartSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartSpec")
            .field("kind", &self.kind)
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
