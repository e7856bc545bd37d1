//! What a session keeps from one harness to the next.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_agent::{BoxError, Compose};
use dsh_scope::ScopeClosed;
use dsh_session::{AppendError, Durability, EventData, TurnEnd, TurnTrigger};
use dsh_tasks::TaskRegistry;

use crate::lineage;

/// Gives an agent the tasks that its session had before, and keeps what it was not told for the next harness.
pub(crate) fn compose(tasks: TaskRegistry) -> Compose {
    Box::new(move |agent| Box::pin(async move { take_up(&tasks, &agent).await }))
}

async fn take_up(tasks: &TaskRegistry, agent: &Arc<Agent>) -> Result<(), BoxError> {
    let ending = Arc::downgrade(agent);
    // Registered first, so it runs when everything else of the agent has ended and no notice can come any more.
    let keep = move || async move {
        if let Some(agent) = ending.upgrade() {
            keep_notices(&agent).await;
        }
    };
    let kept = agent.scope().effect("notices that nobody took", keep);
    drop(kept.map_err(ScopeClosed::discard)?);
    let ended = lineage::ended_tasks(&agent.session().events());
    Ok(tasks.restore_ended(agent, ended).await?)
}

/// Logs the notices that wait, in a turn without a request: the next request shows them.
async fn keep_notices(agent: &Agent) {
    let lease = agent.inbox().lease();
    if lease.is_empty() {
        return;
    }
    let session = agent.session();
    let turn = session.next_turn();
    let log = || -> Result<(), AppendError> {
        session.append(EventData::TurnStart {
            turn,
            trigger: TurnTrigger::Notice,
        })?;
        for message in lease.messages() {
            session.append(EventData::UserMessage(message.clone()))?;
        }
        let reason = TurnEnd::Disposed;
        session.append(EventData::TurnEnd { turn, reason }).map(drop)
    };
    if let Err(error) = log() {
        tracing::error!(agent = %agent.id(), "notices were not logged: {error}");
        return;
    }
    match session.flush(Durability::Synced).await {
        Ok(()) => lease.commit(),
        Err(error) => tracing::error!(agent = %agent.id(), "notices were not kept: {error}"),
    }
}
