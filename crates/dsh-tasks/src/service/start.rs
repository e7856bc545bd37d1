//! Start: every check, then a reservation, then the producer, then the record.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_scope::{contain, contain_boxed};
use tokio::runtime::Handle;

use crate::{
    config::MAX_LIMIT,
    core::{Admission, Committed, Ending, Facts, Refused, Reservation, Verdict},
    error::StartError,
    id::{Kind, TaskId},
    outcome::Outcome,
    work::{BoxFuture, StartSpec, Work},
};

use super::{
    Shared, TaskRegistry,
    kept::{Kept, TaskParts},
    teardown,
};

impl TaskRegistry {
    /// Starts a task and returns its id.
    ///
    /// Everything that can be refused is checked before `run` is called, in the order of [`StartError`]; after it
    /// nothing can fail. While `run` is under way the start counts against the owner's limit. A task belongs to its
    /// owner and to this registry: it does not end with whoever started it.
    ///
    /// # Errors
    ///
    /// [`StartError`]; no id was used then.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, before anything was changed.
    pub fn start(&self, spec: StartSpec) -> Result<TaskId, StartError> {
        let _ = Handle::current();
        let shared = &self.shared;
        let facts = shared
            .check(&spec)
            .map_err(|refused| shared.unless_closing(refused))?;
        let StartSpec {
            owner,
            admission,
            run,
            ..
        } = spec;
        let reservation = shared.reserve(owner.as_ref(), admission)?;
        let work = match contain(run) {
            Ok(Ok(work)) => work,
            Ok(Err(error)) => return Err(StartError::Run(error)),
            Err(panicked) => return Err(StartError::Panicked(panicked.to_string())),
        };
        shared.commit(reservation, facts, work, owner.as_ref())
    }
}

impl Shared {
    /// What is wrong with a start besides the end of the registry, which the reservation sees.
    fn check(&self, spec: &StartSpec) -> Result<Facts, StartError> {
        let words = self.config.vocabulary;
        if !self.registrations.serves(spec.owner.as_ref()) {
            return Err(StartError::NoSurface(words));
        }
        let kind = Kind::new(spec.kind.clone()).ok_or(StartError::Kind(words))?;
        if spec.label.is_empty() {
            return Err(StartError::Label(words));
        }
        if let Some(limit) = spec.output_limit_bytes
            && !(1..=MAX_LIMIT).contains(&limit)
        {
            return Err(StartError::OutputLimit(limit));
        }
        if let Some(owner) = &spec.owner {
            self.check_owner(owner)?;
        }
        Ok(Facts {
            kind,
            label: spec.label.clone(),
            output_limit_bytes: spec.output_limit_bytes,
        })
    }

    /// The end of the registry is the first thing to say, whatever else is wrong.
    fn unless_closing(&self, refused: StartError) -> StartError {
        match self.is_closing() {
            true => StartError::Closing(self.config.vocabulary),
            false => refused,
        }
    }

    /// Whether this very agent may own tasks.
    pub(super) fn check_owner(&self, owner: &Agent) -> Result<(), StartError> {
        let vocabulary = self.config.vocabulary;
        let agents = self.agents.as_ref().ok_or(StartError::NoAgents(vocabulary))?;
        if agents.is_registered(owner) {
            return Ok(());
        }
        Err(StartError::NotRegistered {
            vocabulary,
            agent: owner.id().to_string(),
        })
    }

    fn reserve(
        self: &Arc<Self>,
        owner: Option<&Arc<Agent>>,
        admission: Admission,
    ) -> Result<Reservation<Kept>, StartError> {
        let vocabulary = self.config.vocabulary;
        if self.scope.token().is_cancelled() {
            return Err(StartError::Closing(vocabulary));
        }
        let key = owner.map(|agent| self.owner(agent));
        let attach = |cleanup| match owner {
            Some(owner) => teardown::attach(self, owner, cleanup),
            None => Ok(()),
        };
        self.ledger
            .reserve(key, admission, self.clock.now(), attach)
            .map_err(|refused| match refused {
                Refused::Closing => StartError::Closing(vocabulary),
                Refused::Owner(text) => StartError::OwnerClosing(text),
                Refused::Full { limit, running } => StartError::Limit {
                    vocabulary,
                    limit,
                    running,
                },
            })
    }

    fn commit(
        self: &Arc<Self>,
        reservation: Reservation<Kept>,
        facts: Facts,
        work: Work,
        owner: Option<&Arc<Agent>>,
    ) -> Result<TaskId, StartError> {
        let Work { done, hooks } = work;
        let kept = TaskParts::new(hooks, owner, self.number);
        match reservation.commit(facts, kept.clone(), self.clock.now()) {
            Committed::Task(id) => {
                self.follow(&id, done, owner);
                Ok(id)
            }
            Committed::Ending(id, request) => {
                self.follow(&id, done, owner);
                teardown::cancel(self, &id, &kept, &request);
                Ok(id)
            }
            Committed::TooLate(request) => {
                if let Err(error) = kept.cancel(&request) {
                    tracing::warn!(
                        "tasks: cancel of a start that came too late threw; work may be orphaned: {error}"
                    );
                }
                self.outlive(done);
                Err(StartError::TooLate(self.config.vocabulary))
            }
        }
    }

    /// Awaits the end of a task and records it.
    fn follow(self: &Arc<Self>, id: &TaskId, done: BoxFuture<Outcome>, owner: Option<&Arc<Agent>>) {
        let (shared, task) = (self.clone(), id.clone());
        // Not the owner: nobody here keeps an agent alive.
        let life = owner.map(|owner| (owner.instance(), owner.scope().token().clone()));
        let followed = self.scope.spawn(id.text(), async move {
            let ended = contain_boxed(done);
            let outcome = tokio::select! {
                biased;
                outcome = ended => outcome,
                () = shared.over.cancelled() => return,
            };
            let outcome = outcome.unwrap_or_else(|panicked| {
                tracing::warn!(
                    "tasks: task {task} 'done' rejected (producer contract violation): {panicked}"
                );
                Outcome::failed().detail(format!("Error: {panicked}"))
            });
            let now = shared.clock.now();
            let over = life.filter(|(_, life)| life.is_cancelled());
            let disposal = over.map(|(owner, _)| Ending::Owner(owner));
            shared.ledger.settle_amid(&task, outcome, disposal, now);
        });
        if followed.is_err() {
            // The scope closes after the teardown, which waited for this start or gave it up.
            let lost = Outcome::failed().detail("nothing is left that could await it; work may be orphaned");
            self.ledger.settle(id, lost, Verdict::Forced, self.clock.now());
        }
    }

    /// Lets the work of a start that came too late end in its own time, while there is still time.
    fn outlive(&self, done: BoxFuture<Outcome>) {
        let over = self.over.clone();
        let last = async move {
            tokio::select! {
                _ = contain_boxed(done) => {}
                () = over.cancelled() => {}
            }
        };
        // Refused means that the scope has closed; the future is dropped here then.
        let _ = self.scope.spawn("task that came too late", last);
    }
}
