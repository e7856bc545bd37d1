//! Who listens, and who serves whom.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use dsh_agent::{Agent, InstanceId};
use dsh_scope::{EffectHandle, Scope, ScopeClosed};
use dsh_session::SessionId;

use crate::{error::BoxError, work::BoxFuture};

use super::{Caller, Shared, TaskDone};

/// Whose tasks a surface or a listener is for.
#[derive(Debug, Clone)]
pub enum Serves {
    /// Every owner's, and unowned ones.
    Everyone,
    /// Those of agents whose scope is this one or lies within it.
    Within(Scope),
}

/// A control surface that is attached. Dropping it does nothing: the surface stays until its scope closes.
pub struct SurfaceHandle {
    effect: EffectHandle,
}

/// A listener or observer that is registered. Dropping it does nothing: it stays until its scope closes.
pub struct ListenerHandle {
    effect: EffectHandle,
}

pub(super) type DoneListener = Arc<dyn Fn(TaskDone) -> BoxFuture<Result<(), BoxError>> + Send + Sync>;
pub(super) type Observer = Arc<dyn Fn(Option<&SessionId>) + Send + Sync>;

/// Looked at by every start and every end, changed by few.
#[derive(Default)]
pub(super) struct Registrations(RwLock<State>);

#[derive(Default)]
struct State {
    next: u64,
    surfaces: Vec<(u64, Serves)>,
    listeners: Vec<(u64, Serves, DoneListener)>,
    observers: Vec<(u64, Observer)>,
    cleanups: HashMap<InstanceId, EffectHandle>,
    /// Disposal has begun: done listeners are called no more.
    silent: bool,
}

impl Registrations {
    pub(super) fn serves(&self, owner: Caller<'_>) -> bool {
        let state = self.look();
        state.surfaces.iter().any(|(_, serves)| serves.includes(owner))
    }

    /// The next listener to call for an owner, in their order, among those that were not.
    pub(super) fn next_listener(&self, owner: Caller<'_>, called: &[u64]) -> Option<(u64, DoneListener)> {
        let state = self.look();
        if state.silent {
            return None;
        }
        let due = state
            .listeners
            .iter()
            .filter(|(id, serves, _)| !called.contains(id) && serves.includes(owner));
        // All scopes that include one owner lie within each other, so the depth orders them.
        let first = due.min_by_key(|(id, serves, _)| (state.depth(serves), *id))?;
        Some((first.0, first.2.clone()))
    }

    pub(super) fn next_observer(&self, last: Option<u64>) -> Option<(u64, Observer)> {
        let state = self.look();
        let next = state
            .observers
            .iter()
            .find(|(id, _)| last.is_none_or(|last| *id > last));
        next.cloned()
    }

    pub(super) fn silence(&self) {
        self.lock().silent = true;
    }

    pub(super) fn keep_cleanup(&self, owner: InstanceId, cleanup: EffectHandle) {
        self.lock().cleanups.insert(owner, cleanup);
    }

    pub(super) fn forget_cleanup(&self, owner: InstanceId) {
        self.lock().cleanups.remove(&owner);
    }

    pub(super) fn take_cleanups(&self) -> Vec<EffectHandle> {
        self.lock().cleanups.drain().map(|(_, cleanup)| cleanup).collect()
    }

    fn add(&self, add: impl FnOnce(&mut State, u64)) -> u64 {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        add(&mut state, id);
        id
    }

    /// Takes a registration out; how many observers that were. What it held is dropped after the lock.
    fn remove(&self, id: u64) -> usize {
        let mut state = self.lock();
        let surfaces = state.surfaces.extract_if(.., |(surface, _)| *surface == id);
        let surfaces: Vec<_> = surfaces.collect();
        let listeners = state.listeners.extract_if(.., |(listener, ..)| *listener == id);
        let listeners: Vec<_> = listeners.collect();
        let observers = state.observers.extract_if(.., |(observer, _)| *observer == id);
        let observers: Vec<_> = observers.collect();
        drop(state);
        drop((surfaces, listeners));
        observers.len()
    }

    fn look(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many listeners' scopes a listener's own lies within; nothing for everyone's.
    fn depth(&self, serves: &Serves) -> usize {
        let Serves::Within(inner) = serves else {
            return 0;
        };
        let outer = |(_, other, _): &&(u64, Serves, DoneListener)| match other {
            Serves::Everyone => false,
            Serves::Within(outer) => inner.is_within(outer),
        };
        self.listeners.iter().filter(outer).count()
    }
}

impl Serves {
    fn includes(&self, owner: Option<&Arc<Agent>>) -> bool {
        match (self, owner) {
            (Self::Everyone, _) => true,
            (Self::Within(_), None) => false,
            (Self::Within(scope), Some(owner)) => owner.scope().is_within(scope),
        }
    }
}

impl SurfaceHandle {
    /// Closes the fence again, unless another surface keeps it open. Once is enough, twice is the same.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// It happens in a task of its own: dropping this future only stops waiting.
    pub async fn detach(&self) {
        self.effect.dispose().await;
    }
}

impl ListenerHandle {
    /// Ends the calls. Once is enough, twice is the same.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// It happens in a task of its own: dropping this future only stops waiting.
    pub async fn detach(&self) {
        self.effect.dispose().await;
    }
}

pub(super) fn attach_surface(
    shared: &Arc<Shared>,
    scope: &Scope,
    name: &str,
    serves: Serves,
) -> Result<SurfaceHandle, ScopeClosed<()>> {
    tracing::debug!("tasks: surface \"{name}\" attached");
    let id = shared
        .registrations
        .add(|state, id| state.surfaces.push((id, serves)));
    let effect = tie(shared, scope, "tasks.attachSurface()", id)?;
    Ok(SurfaceHandle { effect })
}

pub(super) fn on_done(
    shared: &Arc<Shared>,
    scope: &Scope,
    serves: Serves,
    listener: DoneListener,
) -> Result<ListenerHandle, ScopeClosed<()>> {
    let add = |state: &mut State, id| state.listeners.push((id, serves, listener));
    let id = shared.registrations.add(add);
    let effect = tie(shared, scope, "tasks.onTaskDone()", id)?;
    Ok(ListenerHandle { effect })
}

pub(super) fn on_change(
    shared: &Arc<Shared>,
    scope: &Scope,
    observer: Observer,
) -> Result<ListenerHandle, ScopeClosed<()>> {
    shared.ledger.look(|table| table.observers += 1);
    let id = shared
        .registrations
        .add(|state, id| state.observers.push((id, observer)));
    let effect = tie(shared, scope, "tasks.onTasksChanged()", id)?;
    Ok(ListenerHandle { effect })
}

/// Takes a registration out again when its scope closes, and at once when that refuses.
fn tie(
    shared: &Arc<Shared>,
    scope: &Scope,
    label: &'static str,
    id: u64,
) -> Result<EffectHandle, ScopeClosed<()>> {
    let service = Arc::downgrade(shared);
    let dispose = move || async move {
        if let Some(shared) = service.upgrade() {
            untie(&shared, id);
        }
    };
    scope.effect(label, dispose).map_err(|refused| {
        untie(shared, id);
        refused.discard()
    })
}

fn untie(shared: &Shared, id: u64) {
    let observers = shared.registrations.remove(id);
    shared.ledger.look(|table| table.observers -= observers);
}

impl fmt::Debug for SurfaceHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SurfaceHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for ListenerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenerHandle").finish_non_exhaustive()
    }
}
