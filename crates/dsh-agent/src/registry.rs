//! The live agents, and how one begins and ends.
//!
//! # Invariants
//!
//! 1. An id has at most one registered agent.
//! 2. An agent is unregistered after its scope was closed, and only by its own disposal: the entry is compared by
//!    instance, so a late disposal cannot remove a successor.
//!
//! Lock order: registry, then a scope's own lock (when a child scope is made). No foreign code runs under either.

use std::{
    collections::HashMap,
    fmt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use dsh_scope::{CloseError, EffectHandle, Scope};
use dsh_session::{Session, SessionId};

use crate::{Agent, AgentError};

/// The live agents. Cloning gives another handle to the same registry.
#[derive(Clone, Default)]
pub struct AgentRegistry {
    agents: Arc<Mutex<HashMap<SessionId, Arc<Agent>>>>,
}

/// What an agent is made of.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Id of its session, and its own.
    pub id: SessionId,
    /// The directory its tools work in.
    pub cwd: Option<PathBuf>,
    /// The scope it lives in: its own scope is a child of it, and it is disposed when that closes.
    pub within: Scope,
}

/// The right to dispose an agent; its creator has it.
///
/// Dropping it undisposed cancels the token of the agent's scope and logs a warning. The agent stays registered, and
/// what it owns is ended in order when the scope it was created in closes.
pub struct AgentHandle {
    agent: Arc<Agent>,
    registry: AgentRegistry,
    disposal: EffectHandle,
    dispose_called: AtomicBool,
}

impl AgentRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an agent and registers it. Needs no runtime.
    ///
    /// # Errors
    ///
    /// [`AgentError::Duplicate`] while an agent with this id is registered, which includes one whose disposal is not
    /// over; [`AgentError::ScopeClosed`] when the scope it should live in is closing. Nothing is left behind then.
    pub fn create(&self, spec: AgentSpec) -> Result<AgentHandle, AgentError> {
        let AgentSpec { id, cwd, within } = spec;
        self.create_with(Session::new(id, cwd), within)
    }

    /// As [`create`](Self::create), with a session that exists: one that is written to a file, or that is gone on with.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn create_with(&self, session: Session, within: Scope) -> Result<AgentHandle, AgentError> {
        let id = session.id().clone();
        let mut agents = self.lock();
        if agents.contains_key(&id) {
            return Err(AgentError::Duplicate(id));
        }
        let closed = |source| AgentError::ScopeClosed {
            id: id.clone(),
            source,
        };
        let scope = within.child(format!("agent {id}")).map_err(closed)?;
        let agent = Arc::new(Agent::new(session, scope));
        // Registered behind the agent's scope, so a closing parent runs this first: whoever disposes the agent, it is
        // unregistered after its scope was closed.
        let (registry, gone) = (self.clone(), agent.clone());
        let dispose = move || async move {
            gone.retire().await;
            if let Err(error) = gone.scope().close().await {
                tracing::error!("{error}");
            }
            registry.unregister(&gone);
        };
        let disposal = within
            .effect(format!("disposal of agent {id}"), dispose)
            .map_err(|refused| closed(refused.discard()))?;
        agents.insert(id, agent.clone());
        Ok(AgentHandle {
            agent,
            registry: self.clone(),
            disposal,
            dispose_called: AtomicBool::new(false),
        })
    }

    /// The live agent with this id.
    pub fn get(&self, id: &SessionId) -> Option<Arc<Agent>> {
        self.lock().get(id).cloned()
    }

    /// Whether this very agent is registered; another one with its id does not count.
    pub fn is_registered(&self, agent: &Agent) -> bool {
        self.lock()
            .get(agent.id())
            .is_some_and(|found| found.instance() == agent.instance())
    }

    fn unregister(&self, agent: &Agent) {
        let mut agents = self.lock();
        if agents
            .get(agent.id())
            .is_some_and(|found| found.instance() == agent.instance())
        {
            agents.remove(agent.id());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Agent>>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AgentHandle {
    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// Stops the agent's driver and waits for it, closes the agent's scope, then unregisters the agent. Every call awaits
    /// the one disposal; when this returns `Ok`, what the agent owned has ended and its id is free.
    ///
    /// # Errors
    ///
    /// [`CloseError::FromWithin`] when called from a task or disposer that the agent's scope waits for; nothing is
    /// changed then. [`CloseError::Interrupted`] when the runtime was shut down in the middle.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// The disposal begins at the first poll and runs in a task of its own: dropping this future only stops waiting.
    pub async fn dispose(&self) -> Result<(), CloseError> {
        self.agent.scope().closable_here()?;
        self.dispose_called.store(true, Ordering::Relaxed);
        self.disposal.dispose().await;
        self.agent.scope().close().await?;
        // Done already, unless the parent scope was dropped unclosed, and the disposer with it.
        self.registry.unregister(&self.agent);
        Ok(())
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        if *self.dispose_called.get_mut() || self.agent.scope().is_closing() {
            return;
        }
        self.agent.scope().token().cancel();
        tracing::warn!(
            agent = %self.agent.id(),
            "agent handle dropped without dispose: its token is cancelled, the rest waits for its parent scope"
        );
    }
}

impl fmt::Debug for AgentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRegistry").finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHandle")
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}
