//! Who can be delegated to.
//!
//! # Invariants
//!
//! 1. A name has at most one provider. The first stays.
//! 2. Observers are called under no lock, each of them, whatever another one does.
//! 3. The registry owns no run: removing a provider ends none.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent::BoxError;
use dsh_scope::{EffectHandle, Scope, ScopeClosed, contain, contain_future};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::event::{Listener, RunInfo, SubagentEvent};
use crate::{
    Capabilities, ParentContext, RegisterError, Run, StartError, StartFailure, StartRequest, StopReason,
    SubagentProvider, check_max_depth, check_output_schema,
};

/// Who can be delegated to. Cloning gives another handle to the same registry.
#[derive(Clone, Default)]
pub struct SubagentRegistry {
    inner: Arc<Inner>,
}

/// What is known of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderInfo {
    /// What a request may ask it for.
    pub capabilities: Capabilities,
    /// What a child of it knows of its parent's conversation.
    pub context: ParentContext,
}

#[derive(Default)]
struct Inner {
    providers: Mutex<Vec<Entry>>,
    listeners: Mutex<Listeners>,
}

#[derive(Clone)]
struct Entry {
    name: String,
    info: ProviderInfo,
    provider: Arc<dyn SubagentProvider>,
}

#[derive(Default)]
struct Listeners {
    next: u64,
    all: Vec<(u64, Listener)>,
}

impl SubagentRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Offers a provider under this name for as long as `scope`, or until the handle is disposed. Runs that it has started
    /// by then go on.
    ///
    /// # Errors
    ///
    /// A [`RegisterError`] when the name is taken, an observer refused it, or the scope is closing. It is not offered then.
    pub fn register(
        &self,
        scope: &Scope,
        name: impl Into<String>,
        provider: Arc<dyn SubagentProvider>,
    ) -> Result<EffectHandle, RegisterError> {
        let name = name.into();
        let info = ProviderInfo {
            capabilities: provider.capabilities(),
            context: provider.context(),
        };
        let added = Arc::clone(&provider);
        {
            let mut providers = self.inner.providers();
            if providers.iter().any(|entry| entry.name == name) {
                return Err(RegisterError::Duplicate(name));
            }
            providers.push(Entry {
                name: name.clone(),
                info,
                provider,
            });
        }
        let (inner, its_name, gone) = (Arc::downgrade(&self.inner), name.clone(), Arc::clone(&added));
        let removed = scope.effect(format!("subagent provider {name}"), move || async move {
            if let Some(inner) = inner.upgrade() {
                inner.remove(&its_name, &gone);
            }
        });
        let handle = match removed {
            Ok(handle) => handle,
            Err(closed) => {
                self.inner.providers().retain(|entry| entry.name != name);
                return Err(closed.discard().into());
            }
        };
        if let Err(error) = self.inner.added(&name) {
            // Those who took it have to hear that it is gone.
            self.inner.remove(&name, &added);
            return Err(RegisterError::Refused(error));
        }
        Ok(handle)
    }

    /// The names, in the order of their registration.
    pub fn names(&self) -> Vec<String> {
        let providers = self.inner.providers();
        providers.iter().map(|entry| entry.name.clone()).collect()
    }

    /// What is known of a provider; nothing if there is none.
    pub fn info(&self, name: &str) -> Option<ProviderInfo> {
        self.inner.find(name).map(|entry| entry.info)
    }

    /// Tells an observer everything from now on, for as long as `scope`. It is called where things happen, and must not
    /// block.
    ///
    /// # Errors
    ///
    /// [`ScopeClosed`] when the scope is closing.
    pub fn observe(&self, scope: &Scope, listener: Listener) -> Result<EffectHandle, ScopeClosed<()>> {
        let id = {
            let mut listeners = self.inner.listeners();
            listeners.next += 1;
            let id = listeners.next;
            listeners.all.push((id, listener));
            id
        };
        let inner = Arc::downgrade(&self.inner);
        let forget = move || {
            if let Some(inner) = inner.upgrade() {
                inner.listeners().all.retain(|(other, _)| *other != id);
            }
        };
        let forgotten = forget.clone();
        scope
            .effect("subagent observer", move || async move { forget() })
            .map_err(|closed| {
                forgotten();
                closed.discard()
            })
    }

    /// Starts a child, and returns when it is published. The caller has to [dispose](Run::dispose) it.
    ///
    /// What can be refused is, in this order, before the provider hears of it: its name, what it cannot do
    /// (`outputSchema`, `depthLimit`, `toolFilter`, `persona`), a limit of depth that is none, a schema that cannot be held.
    ///
    /// # Errors
    ///
    /// A [`StartError`]. Nothing of the child is left then, and no observer is told.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the start; a child that is published all the same is disposed.
    pub async fn start(&self, name: &str, request: StartRequest) -> Result<Run, StartError> {
        let Some(entry) = self.inner.find(name) else {
            return Err(StartError::NoProvider(name.to_owned()));
        };
        admit(&entry, &request)?;
        let parent = Arc::clone(&request.parent);
        let run = published(entry.provider, request).await?;
        self.inner.follow(name, &parent, &run);
        Ok(run)
    }
}

impl Inner {
    fn find(&self, name: &str) -> Option<Entry> {
        let providers = self.providers();
        providers.iter().find(|entry| entry.name == name).cloned()
    }

    /// Only this very provider: one of its name may have come after a registration that was refused.
    fn remove(&self, name: &str, provider: &Arc<dyn SubagentProvider>) {
        let removed = {
            let mut providers = self.providers();
            let at = providers
                .iter()
                .position(|entry| entry.name == name && Arc::ptr_eq(&entry.provider, provider));
            at.map(|at| providers.remove(at))
        };
        if removed.is_some() {
            self.tell(&SubagentEvent::ProviderRemoved {
                name: name.to_owned(),
            });
        }
    }

    fn added(&self, name: &str) -> Result<(), BoxError> {
        let event = SubagentEvent::ProviderAdded {
            name: name.to_owned(),
        };
        let mut refusals = self.call(&event).into_iter();
        let first = refusals.next();
        for refusal in refusals {
            tracing::error!("subagent: {} listener failed: {refusal}", event.name());
        }
        first.map_or(Ok(()), Err)
    }

    /// Observers hear of the start before the caller has the run, and of the end whoever awaits it.
    fn follow(self: &Arc<Self>, provider: &str, parent: &Arc<dsh_agent::Agent>, run: &Run) {
        let info = RunInfo {
            run_id: Uuid::new_v4().to_string(),
            provider: provider.to_owned(),
            id: run.id().to_owned(),
            local: run.local_agent().map(|agent| agent.id().clone()),
            parent: parent.id().clone(),
            parent_instance: parent.instance(),
        };
        self.tell(&SubagentEvent::Started(info.clone()));
        let (inner, watched, named) = (Arc::clone(self), run.clone(), info.clone());
        let ending = parent.scope().token().clone();
        let watch = async move {
            // A closing parent awaits this before it comes to the release, which is what ends a run: then this begins it.
            let result = tokio::select! {
                result = watched.result() => result,
                () = ending.cancelled() => {
                    // Whether it could be released is for its holder to hear, and in the log.
                    let _ = watched.dispose().await;
                    watched.result().await
                }
            };
            let (stop, output) = match result {
                Ok(result) => (result.stop, result.output),
                Err(_) => (StopReason::Error, Vec::new()),
            };
            inner.tell(&SubagentEvent::Ended {
                run: named,
                stop,
                last_assistant_message: (!output.is_empty()).then_some(output),
            });
        };
        if parent.scope().spawn("subagent observers", watch).is_err() {
            // The parent is being disposed, and its runs with it.
            self.tell(&SubagentEvent::Ended {
                run: info,
                stop: StopReason::Aborted,
                last_assistant_message: None,
            });
        }
    }

    fn tell(&self, event: &SubagentEvent) {
        for error in self.call(event) {
            tracing::error!("subagent: {} listener failed: {error}", event.name());
        }
    }

    fn call(&self, event: &SubagentEvent) -> Vec<BoxError> {
        let listeners: Vec<Listener> = {
            let listeners = self.listeners();
            listeners
                .all
                .iter()
                .map(|(_, listener)| Arc::clone(listener))
                .collect()
        };
        let called = listeners.iter().map(|listener| contain(|| listener(event)));
        called
            .filter_map(|called| match called {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(panicked) => Some(panicked.into()),
            })
            .collect()
    }

    fn providers(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn admit(entry: &Entry, request: &StartRequest) -> Result<(), StartError> {
    let can = entry.info.capabilities;
    let gates = [
        (request.output_schema.is_some(), can.output_schema, "outputSchema"),
        (request.max_depth.is_some(), can.depth_limit, "depthLimit"),
        (request.tool_filter.is_some(), can.tool_filter, "toolFilter"),
        (request.persona.is_some(), can.persona, "persona"),
    ];
    for (asked, can, capability) in gates {
        if asked && !can {
            return Err(StartError::UnsupportedCapability {
                provider: entry.name.clone(),
                capability,
            });
        }
    }
    if let Some(max) = request.max_depth {
        check_max_depth(max)?;
    }
    if let Some(schema) = &request.output_schema {
        check_output_schema(schema)?;
    }
    Ok(())
}

/// Runs the start in a task of its own, so that it comes to its end, and its child to a holder or to its own.
async fn published(
    provider: Arc<dyn SubagentProvider>,
    mut request: StartRequest,
) -> Result<Run, StartFailure> {
    let token = request.token.child_token();
    request.token = token.clone();
    let parent = Arc::clone(&request.parent);
    let (told, started) = oneshot::channel();
    let (cancelled, ending) = (token.clone(), parent.scope().token().clone());
    let start = async move {
        let start = contain_future(provider.start(request));
        tokio::pin!(start);
        let started = tokio::select! {
            started = &mut start => started,
            () = ending.cancelled() => {
                cancelled.cancel();
                start.await
            }
        };
        let started = started.unwrap_or_else(|panicked| Err(StartFailure::new(panicked.to_string())));
        if let Err(Ok(run)) = told.send(started)
            && let Err(fault) = run.dispose().await
        {
            tracing::error!("subagent that nobody waited for: {fault}");
        }
    };
    let abandoned = token.drop_guard();
    if let Err(closed) = parent.scope().spawn("subagent start", start) {
        return Err(StartFailure::new(closed.to_string()));
    }
    let started = started
        .await
        .unwrap_or_else(|_| Err(StartFailure::new("the runtime ended during the start")));
    abandoned.disarm();
    started
}

impl fmt::Debug for SubagentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentRegistry")
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
