//! The handle to a scope.

use std::{fmt, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{
    effect::{EffectHandle, TrackedTask},
    error::{CloseError, ScopeClosed},
    lineage::Lineage,
    state::Core,
};

/// A lifetime that effects and tasks are registered on. Cloning gives another handle to the same scope.
///
/// Do not move a handle into a disposer registered on that same scope: it would keep itself alive.
#[derive(Clone)]
pub struct Scope {
    core: Arc<Core>,
}

impl Scope {
    /// A scope without a parent. The name is for logs and errors; it need not be unique.
    pub fn root(name: impl Into<Arc<str>>) -> Self {
        Self {
            core: Core::new(name.into(), CancellationToken::new(), &Lineage::empty()),
        }
    }

    /// A scope that its parent closes, in the order of the parent's effects. Its token is a child of the parent's.
    ///
    /// The parent keeps it: a child whose handles are all dropped lives on until its parent closes. Closing a child
    /// first leaves nothing of it in the parent.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when this scope is closing or closed.
    pub fn child(&self, name: impl Into<Arc<str>>) -> Result<Self, ScopeClosed<()>> {
        let name = name.into();
        let label = format!("scope \"{name}\"");
        let child = Self {
            core: Core::new(name, self.core.token.child_token(), &self.core.lineage),
        };
        let closed = child.clone();
        let close = move || async move {
            if let Err(error) = closed.close().await {
                tracing::error!("{error}");
            }
        };
        let kept = self.effect(label, close).map_err(ScopeClosed::discard)?;
        child.core.kept_as(kept.core, kept.id);
        Ok(child)
    }

    /// The name it was given.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Cancelled as the first step of closing, and when the scope is dropped unclosed. It asks to stop; it does not
    /// say that anything has stopped.
    pub fn token(&self) -> &CancellationToken {
        &self.core.token
    }

    /// Whether this scope is `ancestor` or a descendant of it.
    pub fn is_within(&self, ancestor: &Scope) -> bool {
        self.core.lineage.contains(ancestor.core.id)
    }

    /// Whether [`close`](Self::close) was begun, by this scope's own handles or by its parent in turn. It stays true.
    pub fn is_closing(&self) -> bool {
        self.core.is_closing()
    }

    /// Whether [`close`](Self::close) could wait for the end from where this is called. It changes nothing.
    ///
    /// For those whose disposal does more than close a scope and must not begin what it cannot finish.
    ///
    /// # Errors
    ///
    /// [`CloseError::FromWithin`] as `close` would answer it.
    pub fn closable_here(&self) -> Result<(), CloseError> {
        if Lineage::current().contains(self.core.id) {
            return Err(CloseError::FromWithin {
                scope: self.core.name.clone(),
            });
        }
        Ok(())
    }

    /// Registers what must happen at the end. `disposer` is called once, when the scope closes or the handle is
    /// disposed, whichever comes first; if neither comes it is dropped with the scope.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing or closed; the disposer comes back uncalled.
    pub fn effect<D, F>(
        &self,
        label: impl Into<Arc<str>>,
        disposer: D,
    ) -> Result<EffectHandle, ScopeClosed<D>>
    where
        D: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.core
            .register(label.into(), disposer, |disposer| {
                Box::pin(async move { disposer().await })
            })
            .map(|(id, ended)| EffectHandle {
                core: Arc::downgrade(&self.core),
                id,
                ended,
            })
            .map_err(|disposer| ScopeClosed::new(&self.core.name, disposer))
    }

    /// Starts a task that closing awaits, after the token was cancelled: it is up to the task to look at the token.
    /// A panic of the task is logged with its label and ends nothing else.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing or closed; the future comes back unpolled.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn spawn<F>(&self, label: impl Into<Arc<str>>, task: F) -> Result<TrackedTask, ScopeClosed<F>>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.core
            .launch(label.into(), task)
            .map(|(id, ended)| TrackedTask { id, ended })
            .map_err(|task| ScopeClosed::new(&self.core.name, task))
    }

    /// Cancels the token, then ends everything registered, the newest first, each awaited before the next. Every call
    /// awaits the one closing; when this returns `Ok`, nothing that was registered is left.
    ///
    /// # Errors
    ///
    /// [`CloseError::FromWithin`] when called from a task or disposer that this scope, as its own or as a descendant's,
    /// would wait for; nothing is changed then. Seen are tasks of [`spawn`](Self::spawn), disposers, and what those
    /// close or dispose; not seen are threads they start, and two scopes that are being closed independently and wait
    /// for each other. [`CloseError::Interrupted`] when the runtime was shut down in the middle.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Closing begins at the first poll and runs in a task of its own: dropping this future only stops waiting.
    pub async fn close(&self) -> Result<(), CloseError> {
        self.closable_here()?;
        match self.core.close().wait_for(|over| *over).await {
            Ok(_) => Ok(()),
            Err(_) => Err(CloseError::Interrupted {
                scope: self.core.name.clone(),
            }),
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("name", &self.core.name)
            .finish_non_exhaustive()
    }
}
