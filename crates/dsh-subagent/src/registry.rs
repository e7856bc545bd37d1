//! Who can be delegated to.
//!
//! # Invariants
//!
//! 1. A name has at most one provider. The first stays.
//! 2. The registry owns no run: removing a provider ends none.
//! 3. Every change of the providers is made before it is told. Two that meet may be told in either order: an observer that
//!    keeps a picture looks again.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_scope::{EffectHandle, Scope, ScopeClosed};

use crate::event::{Listener, SubagentEvent};
use crate::observers::Observers;
use crate::start::{admit, published};
use crate::{Capabilities, ParentContext, RegisterError, Run, StartError, StartRequest, SubagentProvider};

/// Who can be delegated to. Cloning gives another handle to the same registry.
#[derive(Clone, Default)]
pub struct SubagentRegistry {
    inner: Arc<Inner>,
}

/// What is known of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInfo {
    /// What a request may ask it for.
    pub capabilities: Capabilities,
    /// What a child of it knows of its parent's conversation.
    pub context: ParentContext,
    /// What a model knows its children as, where they are no agents of this harness.
    pub product: Option<String>,
}

#[derive(Default)]
struct Inner {
    providers: Mutex<Vec<Entry>>,
    observers: Arc<Observers>,
}

#[derive(Clone)]
struct Entry {
    name: String,
    info: ProviderInfo,
    provider: Arc<dyn SubagentProvider>,
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
            product: provider.product().map(ToOwned::to_owned),
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
        let event = SubagentEvent::ProviderAdded { name: name.clone() };
        if let Err(error) = self.inner.observers.ask(&event) {
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
        self.inner.observers.add(scope, listener)
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
        admit(name, entry.info.capabilities, &request)?;
        let parent = Arc::clone(&request.parent);
        let run = published(entry.provider, request).await?;
        self.inner.observers.follow(name, &parent, &run);
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
            self.observers.tell(&SubagentEvent::ProviderRemoved {
                name: name.to_owned(),
            });
        }
    }

    fn providers(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.providers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SubagentRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubagentRegistry")
            .field("names", &self.names())
            .finish_non_exhaustive()
    }
}
