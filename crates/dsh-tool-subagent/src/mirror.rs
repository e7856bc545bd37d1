//! The tool follows its provider.
//!
//! # Invariants
//!
//! 1. What is mounted is looked at and changed under the one lock: a provider that comes and goes on several threads leaves
//!    the tool as the last look found the provider, and every change of the provider is followed by a look.
//! 2. While an old tool is leaving no new one is mounted: they have the same name. Its leaving ends with a look.
//!
//! Lock order: this one, then the registry of subagents, that of tools, a scope. None of them calls out under its lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dsh_agent::Agent;
use dsh_scope::{EffectHandle, Scope};
use dsh_subagent::{ProviderInfo, SubagentEvent, SubagentRegistry};
use dsh_tools::ToolRegistry;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::error::InstallError;
use crate::tool::{Delegation, SubagentTool};

/// Where the tool is offered.
pub(crate) enum Place {
    /// To everybody, on this scope.
    Shared(Scope),
    /// To one agent.
    For(Weak<Agent>),
}

/// The tool exists exactly while its provider does, and is worded for the provider that is there.
pub(crate) struct Mirror {
    place: Place,
    tools: ToolRegistry,
    delegation: Arc<Delegation>,
    state: Mutex<State>,
    stale: Notify,
}

enum State {
    Absent,
    Mounted {
        provider: ProviderInfo,
        tool: EffectHandle,
    },
    Leaving,
    /// Nothing is mounted any more.
    Over,
}

impl Mirror {
    pub(crate) fn new(place: Place, tools: ToolRegistry, delegation: Delegation) -> Arc<Self> {
        Arc::new(Self {
            place,
            tools,
            delegation: Arc::new(delegation),
            state: Mutex::new(State::Absent),
            stale: Notify::new(),
        })
    }

    /// Makes the tool agree with its provider, on and on as long as `scope`; the first time before this returns.
    ///
    /// # Errors
    ///
    /// When the tool could not be mounted now, or the scope is closing.
    pub(crate) fn install(self: &Arc<Self>, scope: &Scope) -> Result<(), InstallError> {
        let closed = || InstallError::closed(scope);
        // The first to be registered, the last to be disposed: nobody looks any more then.
        let last = Arc::clone(self);
        scope
            .effect("subagent tool", move || async move { last.end().await })
            .map_err(|_| closed())?;
        let (following, stop) = (Arc::clone(self), scope.token().clone());
        scope
            .spawn("subagent tool follows its provider", async move {
                following.follow(stop).await;
            })
            .map_err(|_| closed())?;
        let looking = Arc::downgrade(self);
        let observer = move |event: &SubagentEvent| {
            let (SubagentEvent::ProviderAdded { name } | SubagentEvent::ProviderRemoved { name }) = event
            else {
                return Ok(());
            };
            if let Some(mirror) = looking.upgrade().filter(|mirror| mirror.provider() == name) {
                mirror.look_again_and_log();
            }
            Ok(())
        };
        self.subagents()
            .observe(scope, Arc::new(observer))
            .map_err(|_| closed())?;
        // After the observer is there: what comes in between is seen by one of the two.
        self.look_again()?;
        if matches!(*self.state(), State::Absent) {
            tracing::info!(
                "subagent provider \"{}\" not registered yet; the \"{}\" tool will register when it appears",
                self.provider(),
                self.delegation.config.tool_name
            );
        }
        Ok(())
    }

    /// Mounts the tool if its provider is there, and has it leave if it is not, or is another one than the tool was worded
    /// for. Once is as good as twice.
    fn look_again(&self) -> Result<(), InstallError> {
        let mut state = self.state();
        let provider = self.subagents().info(self.provider());
        match (&*state, provider) {
            (State::Absent, Some(provider)) => {
                if let Some(tool) = self.mount(&provider)? {
                    *state = State::Mounted { provider, tool };
                }
            }
            (State::Mounted { provider: known, .. }, provider) if provider.as_ref() != Some(known) => {
                self.stale.notify_one();
            }
            (State::Mounted { .. } | State::Leaving | State::Over, _) | (State::Absent, None) => {}
        }
        Ok(())
    }

    /// A tool that cannot be mounted is no matter of the provider, which others use.
    fn look_again_and_log(&self) {
        if let Err(error) = self.look_again() {
            tracing::error!(
                "the \"{}\" tool is not there: {error}",
                self.delegation.config.tool_name
            );
        }
    }

    /// Nothing for an agent that is gone.
    fn mount(&self, provider: &ProviderInfo) -> Result<Option<EffectHandle>, InstallError> {
        self.delegation.config.may_mount(provider.capabilities)?;
        let tool = Arc::new(SubagentTool::new(Arc::clone(&self.delegation), provider.clone()));
        let mounted = match &self.place {
            Place::Shared(scope) => Some(self.tools.register(scope, tool)?),
            Place::For(agent) => match agent.upgrade() {
                Some(agent) => Some(self.tools.register_for(&agent, tool)?),
                None => None,
            },
        };
        Ok(mounted)
    }

    /// Has the tool leave whenever it no longer fits, then looks again.
    async fn follow(&self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = self.stale.notified() => {}
                () = stop.cancelled() => return,
            }
            let provider = self.subagents().info(self.provider());
            let stale = {
                let mut state = self.state();
                match std::mem::replace(&mut *state, State::Leaving) {
                    State::Mounted {
                        provider: known,
                        tool,
                    } if provider.as_ref() != Some(&known) => Some(tool),
                    other => {
                        *state = other;
                        None
                    }
                }
            };
            if let Some(tool) = stale {
                tool.dispose().await;
                *self.state() = State::Absent;
                self.look_again_and_log();
            }
        }
    }

    /// Has the tool leave for good.
    async fn end(&self) {
        let last = std::mem::replace(&mut *self.state(), State::Over);
        if let State::Mounted { tool, .. } = last {
            tool.dispose().await;
        }
    }

    fn subagents(&self) -> &SubagentRegistry {
        &self.delegation.subagents
    }

    fn provider(&self) -> &str {
        &self.delegation.config.provider
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
