//! Who is told what happens. Observers are called under no lock, each of them, whatever another one does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent::{Agent, BoxError};
use dsh_scope::{EffectHandle, Scope, ScopeClosed, contain};
use uuid::Uuid;

use crate::event::{Listener, RunInfo, SubagentEvent};
use crate::{Run, StopReason};

/// Stands for an error that cannot be shown.
const UNRENDERABLE: &str = "<unrenderable thrown value>";

#[derive(Default)]
pub(crate) struct Observers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    all: Vec<(u64, Listener)>,
}

impl Observers {
    pub(crate) fn add(
        self: &Arc<Self>,
        scope: &Scope,
        listener: Listener,
    ) -> Result<EffectHandle, ScopeClosed<()>> {
        let id = {
            let mut state = self.state();
            state.next += 1;
            let id = state.next;
            state.all.push((id, listener));
            id
        };
        let observers = Arc::downgrade(self);
        let forget = move || {
            if let Some(observers) = observers.upgrade() {
                observers.forget(id);
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

    /// Tells everybody. What they say is only logged.
    pub(crate) fn tell(&self, event: &SubagentEvent) {
        self.call(event, |_| {});
    }

    /// Tells everybody, and returns what the first one said who does not want it.
    pub(crate) fn ask(&self, event: &SubagentEvent) -> Result<(), BoxError> {
        let mut refusal = None;
        self.call(event, |error| refusal = refusal.take().or(Some(error)));
        refusal.map_or(Ok(()), Err)
    }

    /// Observers hear of a run before its caller has it, and of its end whoever awaits it.
    pub(crate) fn follow(self: &Arc<Self>, provider: &str, parent: &Arc<Agent>, run: &Run) {
        let info = RunInfo {
            run_id: Uuid::new_v4().to_string(),
            provider: provider.to_owned(),
            id: run.id().to_owned(),
            local: run.local_agent().map(|agent| agent.id().clone()),
            parent: parent.id().clone(),
            parent_instance: parent.instance(),
        };
        self.tell(&SubagentEvent::Started(info.clone()));
        let (observers, watched, named) = (Arc::clone(self), run.clone(), info.clone());
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
            observers.tell(&SubagentEvent::Ended {
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

    fn call(&self, event: &SubagentEvent, mut said: impl FnMut(BoxError)) {
        let listeners: Vec<Listener> = {
            let state = self.state();
            state
                .all
                .iter()
                .map(|(_, listener)| Arc::clone(listener))
                .collect()
        };
        for listener in listeners {
            let (how, error) = match contain(|| listener(event)) {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => ("rejected", error),
                Err(panicked) => ("threw", panicked.into()),
            };
            let text = contain(|| error.to_string()).unwrap_or_else(|_| UNRENDERABLE.to_owned());
            tracing::error!("subagent: {} listener {how}: {text}", event.name());
            said(error);
        }
    }

    fn forget(&self, id: u64) {
        let gone = {
            let mut state = self.state();
            let at = state.all.iter().position(|(other, _)| *other == id);
            at.map(|at| state.all.remove(at))
        };
        // Foreign code: not under the lock.
        drop(gone);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
