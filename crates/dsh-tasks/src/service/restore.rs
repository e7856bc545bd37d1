//! Tasks of an earlier harness, for an agent whose session goes on.

use std::sync::Arc;

use dsh_agent::Agent;

use crate::{
    config::MAX_LIMIT,
    core::{Ended, Ending, News, Refused},
    error::StartError,
    id::{Kind, TaskId},
    outcome::Outcome,
};

use super::{TaskRegistry, kept::TaskParts, teardown};

/// What its end is for a task that the end of its harness took along.
const INTERRUPTED: &str = "interrupted: the harness ended";

/// The greatest number that an id can have: counting goes on above it, and nobody starts so many tasks. A log can say
/// anything.
const MAX_ORDINAL: u64 = MAX_LIMIT;

/// A task of an earlier harness, as its session knows it.
#[derive(Debug, Clone)]
pub struct EndedTask(Ended);

impl EndedTask {
    /// A task that was not known to have ended: it ended with its harness.
    pub fn interrupted(id: TaskId, label: impl Into<Arc<str>>) -> Self {
        Self::new(id, label, Outcome::failed().detail(INTERRUPTED))
    }

    /// A task that ended like this.
    pub fn new(id: TaskId, label: impl Into<Arc<str>>, outcome: Outcome) -> Self {
        Self(Ended {
            id,
            label: label.into(),
            outcome,
            news: News::New,
        })
    }

    /// Its owner was told of its end, or asked for it: it is not announced.
    #[must_use]
    pub fn told(mut self) -> Self {
        self.0.news = News::Old;
        self
    }
}

impl TaskRegistry {
    /// Makes the records of tasks that ended before there was this registry, for an agent that goes on with the session
    /// they belonged to. Their numbers are never given again; what is news is announced to the
    /// [done listeners](Self::on_done), and has been when this returns. Only that session sees them: another one may
    /// have tasks with the same ids.
    ///
    /// An id that no registry gives, such as one with a number above 2⁵³ - 1, is left out, and named in the program's log.
    /// A task that is restored already is left as it is.
    ///
    /// # Errors
    ///
    /// A [`StartError`] when the registry is closing, or the agent can own no tasks. Nothing was restored then.
    ///
    /// # Cancel safety
    ///
    /// The records are made at the first poll; dropping the future only stops waiting for the listeners.
    pub async fn restore_ended(
        &self,
        owner: &Arc<Agent>,
        tasks: impl IntoIterator<Item = EndedTask>,
    ) -> Result<(), StartError> {
        let shared = &self.shared;
        shared.check_owner(owner)?;
        let tasks: Vec<(Ended, Kind)> = tasks.into_iter().filter_map(with_kind).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        let attach = |cleanup| teardown::attach(shared, owner, cleanup);
        let number = shared.number;
        shared
            .ledger
            .restore(&shared.owner(owner), &tasks, shared.clock.now(), attach, |key| {
                TaskParts::ended(key, owner, number)
            })
            .map_err(|refused| match refused {
                Refused::Owner(text) => StartError::OwnerClosing(text),
                Refused::Closing | Refused::Full { .. } => StartError::Closing(shared.config.vocabulary),
            })?;
        self.when_idle(owner).await;
        Ok(())
    }

    /// Waits until no task of this agent is live, no start of one is under way, and every end was announced, so that
    /// its notice, if it has one, is in the inbox.
    ///
    /// # Cancel safety
    ///
    /// Only waits.
    pub async fn when_idle(&self, owner: &Agent) {
        let ending = Ending::Owner(owner.instance());
        self.shared.until(|ledger| ledger.is_idle(ending)).await;
    }
}

fn with_kind(EndedTask(ended): EndedTask) -> Option<(Ended, Kind)> {
    let parts = ended.id.parts().filter(|(_, ordinal)| *ordinal <= MAX_ORDINAL);
    let kind = parts.and_then(|(kind, _)| Kind::new(kind));
    if kind.is_none() {
        tracing::warn!(
            "a task of an earlier harness is left out: no registry gives the id {}",
            ended.id
        );
    }
    Some((ended, kind?))
}
