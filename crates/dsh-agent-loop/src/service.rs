//! The loop as a service: it makes agents that have a driver.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use dsh_agent::{Agent, AgentHandle, AgentRegistry, BoxError, Compose};
use dsh_llm::ModelRegistry;
use dsh_scope::{CloseError, contain_future};
use dsh_session::{AppendError, Derivation, EventData};
use dsh_system_prompt::PromptRegistry;
use dsh_tools::ToolRegistry;
use tokio::sync::broadcast;

use crate::config::{AgentPlan, LoopConfig, ModelChoice};
use crate::error::CreateError;
use crate::live::Live;
use crate::turn::Worker;

/// How many pieces of live text an observer may be behind before it misses some.
const LIVE_CAPACITY: usize = 1024;

/// What the loop works with.
#[derive(Debug, Clone)]
pub struct Deps {
    /// Where its agents are registered.
    pub agents: AgentRegistry,
    /// What they can call.
    pub tools: ToolRegistry,
    /// What they are told.
    pub prompts: PromptRegistry,
    /// Who answers.
    pub models: ModelRegistry,
}

/// Makes agents that have a driver. Cheap to clone; clones are one loop.
#[derive(Debug, Clone)]
pub struct AgentLoop {
    deps: Arc<Deps>,
    config: Arc<LoopConfig>,
}

/// An agent with a driver, and the right to dispose it.
///
/// It works on its own: ask it with [`Agent::follow_up`], and read its session.
pub struct LedAgent {
    handle: AgentHandle,
    model: ModelSeat,
    live: broadcast::Sender<Live>,
}

/// Which model answers an agent. Clones are one seat.
#[derive(Debug, Clone)]
pub struct ModelSeat(Arc<Mutex<ModelChoice>>);

impl AgentLoop {
    /// A loop over these services.
    pub fn new(deps: Deps, config: LoopConfig) -> Self {
        Self {
            deps: Arc::new(deps),
            config: Arc::new(config),
        }
    }

    /// Makes an agent, composes it, then starts its driver.
    ///
    /// # Errors
    ///
    /// [`CreateError`] when its id is taken, its scope is closing, or it could not be composed, which includes a panic of
    /// that. Nothing is left behind then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// An agent that was being composed when the future was dropped is disposed when its parent scope closes.
    pub async fn create(&self, plan: AgentPlan) -> Result<LedAgent, CreateError> {
        let AgentPlan {
            session,
            within,
            model,
            sections,
            variables,
            compose,
            approver,
        } = plan;
        let handle = self.deps.agents.create_with(session, within)?;
        let agent = handle.agent().clone();
        if let Some(compose) = compose
            && let Err(error) = composed(compose, agent.clone()).await
        {
            handle.dispose().await.map_err(CreateError::Disposal)?;
            return Err(CreateError::Compose(error));
        }
        let model = ModelSeat(Arc::new(Mutex::new(model)));
        let (live, _) = broadcast::channel(LIVE_CAPACITY);
        if let Some(approver) = approver
            && let Err(error) = self.deps.tools.approver(&agent, approver)
        {
            tracing::debug!("nobody can be asked: {error}");
        }
        let worker = Worker {
            agent: agent.clone(),
            deps: Arc::clone(&self.deps),
            config: Arc::clone(&self.config),
            model: model.clone(),
            live: live.clone(),
            sections,
            variables,
            derivation: Derivation::default(),
            header: None,
        };
        // A new agent: nobody else can have its seat, and its scope is open unless its parent closes right now, which
        // ends it in order.
        match agent.drive(self.config.wake) {
            Ok(driver) => {
                let drive = worker.drive(driver);
                if agent.scope().spawn("driver", drive).is_err() {
                    tracing::debug!(agent = %agent.id(), "no driver: the agent's scope is closing");
                }
            }
            Err(error) => tracing::debug!("no driver: {error}"),
        }
        Ok(LedAgent { handle, model, live })
    }
}

impl ModelSeat {
    /// The model that answers next.
    pub fn get(&self) -> ModelChoice {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has another model answer, from the next request on. Nothing is logged before that.
    pub fn set(&self, model: ModelChoice) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }
}

impl LedAgent {
    /// The agent.
    pub fn agent(&self) -> &Arc<Agent> {
        self.handle.agent()
    }

    /// The model that answers next.
    pub fn model(&self) -> ModelChoice {
        self.model.get()
    }

    /// Chooses another model, from the next request on. The choice is logged: a session that is taken up again knows it.
    ///
    /// # Errors
    ///
    /// An [`AppendError`] when it cannot be logged; it is not made then.
    pub fn set_model(&self, model: ModelChoice) -> Result<(), AppendError> {
        self.agent().session().append(EventData::ModelChoice {
            provider: model.provider.clone(),
            model: model.model.clone(),
        })?;
        self.model.set(model);
        Ok(())
    }

    /// Which model answers, for who does not lead the agent.
    pub fn model_seat(&self) -> ModelSeat {
        self.model.clone()
    }

    /// The right to dispose it alone, for who needs nothing else: it works on.
    pub fn into_handle(self) -> AgentHandle {
        self.handle
    }

    /// What can be seen of answers from now on before they are whole. A slow observer misses some of it; the log does
    /// not.
    pub fn live(&self) -> broadcast::Receiver<Live> {
        self.live.subscribe()
    }

    /// As [`AgentHandle::dispose`]: the open turn is stopped, the driver leaves, all that the agent owns is ended.
    ///
    /// # Errors
    ///
    /// As [`AgentHandle::dispose`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future only stops waiting.
    pub async fn dispose(&self) -> Result<(), CloseError> {
        self.handle.dispose().await
    }
}

/// Composes an agent; a panic is a failure.
async fn composed(compose: Compose, agent: Arc<Agent>) -> Result<(), BoxError> {
    match contain_future(async { compose(agent).await }).await {
        Ok(composed) => composed,
        Err(panicked) => Err(panicked.into()),
    }
}

impl fmt::Debug for LedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedAgent")
            .field("agent", self.agent())
            .finish_non_exhaustive()
    }
}
