//! What a deployment can set, and what an agent is made of.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::{Compose, WakePolicy};
use dsh_llm::{RetryPolicy, Sampling};
use dsh_scope::Scope;
use dsh_session::Session;
use dsh_system_prompt::{Section, Variable};
use dsh_tools::Approver;

use crate::order::ToolOrder;

/// What a deployment can set.
#[derive(Debug, Clone, PartialEq)]
pub struct LoopConfig {
    /// How many calls of one answer run at once, as far as their tools allow it. Default 10; 1 runs them one by one.
    pub max_parallel_tool_calls: NonZeroUsize,
    /// How long calls that run may take to end once their turn has to stop; then they are given up. Default 30 s.
    pub dispose_timeout: Duration,
    /// Whether notices open turns. Default: 3 in a row.
    pub wake: WakePolicy,
    /// When a failed request is sent again. Default: 5 tries within 60 s.
    pub retry: RetryPolicy,
    /// In which order models see the tools. Default: by name.
    pub tool_order: ToolOrder,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            max_parallel_tool_calls: NonZeroUsize::MIN.saturating_add(9),
            dispose_timeout: Duration::from_secs(30),
            wake: WakePolicy::default(),
            retry: RetryPolicy::default(),
            tool_order: ToolOrder::default(),
        }
    }
}

/// What an agent is made of.
pub struct AgentPlan {
    /// Its conversation: a new one, or one that is gone on with.
    pub session: Session,
    /// The scope it lives in: it is disposed when that closes.
    pub within: Scope,
    /// The model that answers.
    pub model: ModelChoice,
    /// Sections of its prompt alone; one takes the place of a shared one of the same name.
    pub sections: Vec<Section>,
    /// Variables of its prompt alone, besides `provider`, `model` and `cwd`, which every agent has.
    pub variables: Vec<Variable>,
    /// What is done with it before it is driven, such as giving it tools of its own.
    pub compose: Option<Compose>,
    /// Who is asked whether a call may run; without anybody, calls that have to be asked for are denied.
    pub approver: Option<Arc<dyn Approver>>,
}

impl AgentPlan {
    /// An agent with nothing of its own but session and model.
    pub fn new(session: Session, model: ModelChoice, within: Scope) -> Self {
        Self {
            session,
            within,
            model,
            sections: Vec::new(),
            variables: Vec::new(),
            compose: None,
            approver: None,
        }
    }
}

/// The model that answers, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// Under which name its adapter is registered.
    pub provider: String,
    /// The provider's name of it.
    pub model: String,
    /// How answers are sampled.
    pub sampling: Sampling,
}

impl ModelChoice {
    /// A model with the provider's own sampling.
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            sampling: Sampling::default(),
        }
    }
}
