//! What a session keeps from one harness to the next.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_agent::{BoxError, Compose};
use dsh_scope::ScopeClosed;
use dsh_session::{AppendError, Durability, EventData, TurnEnd, TurnTrigger};
use dsh_tasks::TaskRegistry;

use crate::lineage;

/// Gives an agent the tasks that its session had before, and keeps what it was not told, or asked in vain, for the next harness.
pub(crate) fn compose(tasks: TaskRegistry) -> Compose {
    Box::new(move |agent| Box::pin(async move { take_up(&tasks, &agent).await }))
}

async fn take_up(tasks: &TaskRegistry, agent: &Arc<Agent>) -> Result<(), BoxError> {
    let ending = Arc::downgrade(agent);
    // Registered first, so it runs when everything else of the agent has ended and no notice can come any more.
    let keep = move || async move {
        if let Some(agent) = ending.upgrade() {
            keep_untaken(&agent).await;
        }
    };
    let kept = agent.scope().effect("what nobody took", keep);
    drop(kept.map_err(ScopeClosed::discard)?);
    let ended = lineage::ended_tasks(&agent.session().events());
    Ok(tasks.restore_ended(agent, ended).await?)
}

/// Logs the notices and messages that wait, in a turn without a request: the next request shows them. The driver has left
/// when this runs, so nobody else writes a turn.
async fn keep_untaken(agent: &Agent) {
    let (lease, messages) = (agent.inbox().lease(), agent.untaken());
    let trigger = match messages.is_empty() {
        true if lease.is_empty() => return,
        true => TurnTrigger::Notice,
        false => TurnTrigger::Message,
    };
    let session = agent.session();
    let turn = session.next_turn();
    let log = || -> Result<(), AppendError> {
        session.append(EventData::TurnStart { turn, trigger })?;
        for message in lease.messages().iter().chain(&messages) {
            session.append(EventData::UserMessage(message.clone()))?;
        }
        let reason = TurnEnd::Disposed;
        session.append(EventData::TurnEnd { turn, reason }).map(drop)
    };
    if let Err(error) = log() {
        tracing::error!(agent = %agent.id(), "what nobody took was not logged: {error}");
        return;
    }
    match session.flush(Durability::Synced).await {
        Ok(()) => lease.commit(),
        Err(error) => tracing::error!(agent = %agent.id(), "what nobody took was not kept: {error}"),
    }
}
