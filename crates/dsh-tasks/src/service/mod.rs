//! The registry: the core behind its lock, and what needs a runtime around it.
//!
//! Locks, outermost first: the read gate of one task, the core's, the registrations', an agent registry's, a scope's,
//! an inbox's. Foreign code (producer hooks, listeners, observers) runs under none of them, with one exception: an
//! output source is read under the read gate of its own task.

mod claim;
mod dispatch;
mod kept;
mod kill;
mod pulse;
mod read;
mod registrations;
mod restore;
mod start;
mod teardown;
mod unheard;
mod wait;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use dsh_agent::{Agent, AgentRegistry};
use dsh_scope::{EffectHandle, Scope, ScopeClosed, TrackedTask};
use dsh_session::SessionId;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Access, MAX_LIMIT, TasksConfig},
    core::{Ledger, Limits, Owner, Record},
    error::{AccessError, BoxError, InstallError},
    id::TaskId,
    snapshot::TaskSnapshot,
    vocabulary::Vocabulary,
    work::BoxFuture,
};

pub use claim::{Claim, KillOutcome, Killed, Observation, TaskRead, Waited};
pub use dispatch::TaskDone;
pub use registrations::{ListenerHandle, Serves, SurfaceHandle};
pub use restore::EndedTask;
pub use unheard::StartClaim;

use kept::{Clock, Kept};
use pulse::Pulse;
use registrations::Registrations;

/// Who asks: an agent, or nobody in particular. Nobody sees unowned tasks only.
pub type Caller<'a> = Option<&'a Arc<Agent>>;

/// What the registry is given.
#[derive(Debug, Clone, Default)]
pub struct Deps {
    /// Where owners must be registered. Without it every task is unowned.
    pub agents: Option<AgentRegistry>,
}

/// The background tasks of one harness. Cloning gives another handle to the same registry.
#[derive(Clone)]
pub struct TaskRegistry {
    shared: Arc<Shared>,
}

struct Shared {
    /// Which registry of this process this is.
    number: u64,
    config: TasksConfig,
    agents: Option<AgentRegistry>,
    ledger: Arc<Ledger<Kept>>,
    registrations: Registrations,
    clock: Clock,
    pulse: Arc<Pulse>,
    /// Holds the dispatcher and what is awaited for producers and listeners; closed after the teardown.
    scope: Scope,
    /// Cancelled when nothing is awaited any more.
    over: CancellationToken,
    dispatcher: OnceLock<TrackedTask>,
    teardown: OnceLock<EffectHandle>,
}

impl TaskRegistry {
    /// Makes a registry that lives on `scope`: its closing ends every task, then the registry.
    ///
    /// # Errors
    ///
    /// [`InstallError`] when the limit is out of range or the scope is closing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn install(scope: &Scope, deps: Deps, config: TasksConfig) -> Result<Self, InstallError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let limit = config.max_concurrent_tasks_per_owner.get();
        if limit > MAX_LIMIT {
            return Err(InstallError::Limit(limit));
        }
        let pulse = Arc::new(Pulse::new());
        let wake = pulse.clone();
        let limits = Limits {
            per_owner: limit,
            retained_unowned: config.retained_unowned,
            vocabulary: config.vocabulary,
        };
        let closed = || InstallError::ScopeClosed(scope.name().to_owned());
        let shared = Arc::new(Shared {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            config,
            agents: deps.agents,
            ledger: Ledger::new(limits, move |left| wake.tick(left)),
            registrations: Registrations::default(),
            clock: Clock::start(),
            pulse,
            // Registered before the teardown, so closed after it.
            scope: scope.child("tasks").map_err(|_| closed())?,
            over: CancellationToken::new(),
            dispatcher: OnceLock::new(),
            teardown: OnceLock::new(),
        });
        shared.launch(scope).map_err(|_| closed())?;
        Ok(Self { shared })
    }

    /// The words of this deployment.
    pub fn vocabulary(&self) -> Vocabulary {
        self.shared.config.vocabulary
    }

    /// The task as it is now. Consumes nothing and tells nobody.
    ///
    /// # Errors
    ///
    /// [`AccessError`] when the caller may not use it or it does not exist.
    pub fn get(&self, id: &TaskId, caller: Caller<'_>) -> Result<TaskSnapshot, AccessError> {
        let (snapshot, kept) = self.shared.ledger.look(|table| {
            let (record, _) = table.access(id, session(caller))?;
            Ok((record.snapshot(), record.work.clone()))
        })?;
        Ok(kept.complete(snapshot))
    }

    /// The caller's own tasks and unowned ones, in the order of their registration.
    pub fn list(&self, caller: Caller<'_>) -> Vec<TaskSnapshot> {
        let records = self
            .shared
            .ledger
            .look(|table| table.own(session(caller)).map(seen).collect());
        completed(records)
    }

    /// The tasks the caller may use: those of [`list`](Self::list) and, if [`Access`] says so, those of the agents that work
    /// for it, in the order of their registration.
    pub fn list_all(&self, caller: Caller<'_>) -> Vec<TaskSnapshot> {
        let records = self
            .shared
            .ledger
            .look(|table| table.reachable(session(caller)).map(seen).collect());
        completed(records)
    }

    /// Opens the fence for the owners a control surface serves, until the scope closes or the handle is detached.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing.
    pub fn attach_surface(
        &self,
        scope: &Scope,
        name: &str,
        serves: Serves,
    ) -> Result<SurfaceHandle, ScopeClosed<()>> {
        registrations::attach_surface(&self.shared, scope, name, serves)
    }

    /// Whether a surface is attached that serves this owner, so that a start would pass the fence.
    pub fn serves(&self, owner: Caller<'_>) -> bool {
        self.shared.registrations.serves(owner)
    }

    /// Calls `listener` once for the end of every task of the owners it serves, until the scope closes or the handle
    /// is detached, in the order: everyone's listeners, then those of outer scopes before those of inner ones.
    ///
    /// A panic, and a failure of the returned future, is logged and stops no other listener. The future is polled once
    /// in place and, if it is not done then, in a task of its own; nobody waits for it.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing.
    pub fn on_done(
        &self,
        scope: &Scope,
        serves: Serves,
        listener: impl Fn(TaskDone) -> BoxFuture<Result<(), BoxError>> + Send + Sync + 'static,
    ) -> Result<ListenerHandle, ScopeClosed<()>> {
        registrations::on_done(&self.shared, scope, serves, Arc::new(listener))
    }

    /// Calls `observer` with an owner after the set or a status of its tasks changed: a start, a move to stopping, an
    /// end, a removal. No owner means an unowned task, which is in everybody's view.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing.
    pub fn on_change(
        &self,
        scope: &Scope,
        observer: impl Fn(Option<&SessionId>) + Send + Sync + 'static,
    ) -> Result<ListenerHandle, ScopeClosed<()>> {
        registrations::on_change(&self.shared, scope, Arc::new(observer))
    }

    /// Ends every task, then the registry; every call awaits the one disposal. The install scope does the same when
    /// it closes.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// The disposal runs in a task of its own: dropping this future only stops waiting.
    pub async fn close(&self) {
        if let Some(teardown) = self.shared.teardown.get() {
            teardown.dispose().await;
        }
    }
}

impl Shared {
    fn launch(self: &Arc<Self>, scope: &Scope) -> Result<(), ScopeClosed<()>> {
        let dispatcher = self
            .scope
            .spawn("tasks dispatcher", dispatch::run(self.clone()))
            .map_err(ScopeClosed::discard)?;
        let shared = Arc::downgrade(self);
        let teardown = scope.effect("tasks teardown", move || async move {
            if let Some(shared) = shared.upgrade() {
                teardown::service(&shared).await;
            }
        });
        let teardown = teardown.map_err(|refused| {
            self.over.cancel();
            refused.discard()
        })?;
        // Set once, right here.
        let _ = self.dispatcher.set(dispatcher);
        let _ = self.teardown.set(teardown);
        Ok(())
    }

    /// Whose the tasks of an agent are, and who looks on.
    fn owner(&self, agent: &Agent) -> Owner {
        let above = match (self.config.access, &self.agents) {
            (Access::OwnAndDescendants, Some(agents)) => sessions_above(agent, agents),
            (Access::Own, _) | (_, None) => Arc::default(),
        };
        Owner::of(agent, above)
    }

    /// Waits until `fact` holds; it is looked at whenever something has changed.
    async fn until(&self, fact: impl Fn(&Ledger<Kept>) -> bool) {
        self.pulse.until(|| fact(&self.ledger)).await;
    }

    /// Whether disposal has begun, or is certain to come: the install scope's token is cancelled before its effects
    /// are disposed.
    fn is_closing(&self) -> bool {
        self.scope.token().is_cancelled() || self.ledger.look(|table| table.is_closing())
    }
}

/// The sessions of the agents that one works for, the nearest first. A session that only continues another one works for
/// nobody.
fn sessions_above(agent: &Agent, agents: &AgentRegistry) -> Arc<[SessionId]> {
    let parent = |agent: &Agent| {
        let header = agent.session().header();
        let parent = header.parent_session.as_ref();
        parent.filter(|_| header.delegation_depth > 0).cloned()
    };
    let mut above = Vec::new();
    let mut next = parent(agent);
    // A header comes from a file, which may say anything.
    while let Some(session) = next.filter(|session| !above.contains(session)) {
        next = agents.get(&session).and_then(|agent| parent(&agent));
        above.push(session);
    }
    match above.is_empty() {
        // Most agents work for nobody, and all of these share one list.
        true => Arc::default(),
        false => above.into(),
    }
}

fn seen(record: &Record<Kept>) -> (TaskSnapshot, Kept) {
    (record.snapshot(), record.work.clone())
}

fn completed(records: Vec<(TaskSnapshot, Kept)>) -> Vec<TaskSnapshot> {
    let complete = |(snapshot, kept): (TaskSnapshot, Kept)| kept.complete(snapshot);
    records.into_iter().map(complete).collect()
}

fn session<'a>(caller: Caller<'a>) -> Option<&'a SessionId> {
    caller.map(|agent| agent.id())
}

impl std::fmt::Debug for TaskRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskRegistry").finish_non_exhaustive()
    }
}
