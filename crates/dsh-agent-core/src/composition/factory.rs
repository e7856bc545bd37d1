//! Children, made as everybody else is.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use dsh_agent::{AgentFactory, AgentHandle, BoxError, ChildPlan};

use super::composer::{Composer, Role};

/// Makes children. It does not keep the services: they keep it.
pub(crate) struct Children {
    composer: Weak<Composer>,
}

/// The services are gone.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a child: the services were shut down")]
struct Gone;

impl Children {
    pub(crate) fn of(composer: &Arc<Composer>) -> Self {
        Self {
            composer: Arc::downgrade(composer),
        }
    }
}

#[async_trait]
impl AgentFactory for Children {
    async fn create_child(&self, plan: ChildPlan) -> Result<AgentHandle, BoxError> {
        let composer = self.composer.upgrade().ok_or(Gone)?;
        let session = plan.session.clone();
        let led = composer.lead(session, Role::Child(Box::new(plan))).await?;
        Ok(led.into_handle())
    }
}
