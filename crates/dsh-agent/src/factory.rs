//! Children: agents that work for another agent.

use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_session::Session;

use crate::{Agent, AgentHandle};

/// Makes agents that work on their own for another agent. Who delegates knows this, and neither loop nor models.
#[async_trait]
pub trait AgentFactory: Send + Sync + 'static {
    /// Makes a child that can be asked: composed as its parent is, driven, and without anybody who could be asked about its
    /// calls. It lives in the scope of its parent.
    ///
    /// # Errors
    ///
    /// When it could not be made, which includes a [`setup`](ChildPlan::setup) that failed and a parent that is being
    /// disposed. Nothing is left behind then.
    ///
    /// # Cancel safety
    ///
    /// A child that was being made when the future was dropped is disposed with its parent, at the latest.
    async fn create_child(&self, plan: ChildPlan) -> Result<AgentHandle, BoxError>;
}

/// What a child is made of.
pub struct ChildPlan {
    /// Who it works for.
    pub parent: Arc<Agent>,
    /// Its conversation, whose header names the parent's.
    pub session: Session,
    /// Which model answers, as far as it is not the parent's.
    pub model: ModelRoute,
    /// Takes the place of the deployment's persona in its prompt.
    pub persona: Option<String>,
    /// What its prompt says in addition.
    pub instructions: Vec<Instruction>,
    /// What is done with it before it is driven, such as giving it tools of its own.
    pub setup: Option<Compose>,
}

/// Which model answers. What is absent is as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRoute {
    /// Under which name its adapter is registered.
    pub provider: Option<String>,
    /// The provider's name of it.
    pub model: Option<String>,
    /// How long an answer may be, in tokens.
    pub max_tokens: Option<u64>,
}

/// A section of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Its name, which is unique in the prompt.
    pub name: String,
    /// Where it stands, in ascending order.
    pub order: i32,
    /// What it says.
    pub text: String,
}

/// What is done with an agent before it is driven. When it fails, there is no agent.
pub type Compose = Box<dyn FnOnce(Arc<Agent>) -> Composed + Send>;

/// The work of a [`Compose`].
pub type Composed = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

/// Why something that is not ours could not be done.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl ChildPlan {
    /// A child with nothing of its own but its conversation.
    pub fn new(parent: Arc<Agent>, session: Session) -> Self {
        Self {
            parent,
            session,
            model: ModelRoute::default(),
            persona: None,
            instructions: Vec::new(),
            setup: None,
        }
    }
}
