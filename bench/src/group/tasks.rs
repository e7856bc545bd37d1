//! A task registry with owners, and trivial tasks for it.

use std::num::NonZeroU64;
use std::sync::Arc;

use dsh_agent::{Agent, AgentHandle, AgentRegistry, AgentSpec};
use dsh_output::OutputSource;
use dsh_scope::Scope;
use dsh_session::SessionId;
use dsh_tasks::{Deps, Outcome, Serves, StartSpec, TaskId, TaskRegistry, TasksConfig, Work};

use crate::Failure;

/// A registry, and whoever owns its tasks.
pub(crate) struct Tasks {
    pub(crate) scope: Scope,
    pub(crate) registry: TaskRegistry,
    agents: AgentRegistry,
    owners: Vec<AgentHandle>,
}

impl Tasks {
    pub(crate) fn with_owners(owners: usize) -> Result<Tasks, Failure> {
        const MANY: NonZeroU64 = NonZeroU64::MIN.saturating_add(1 << 20);
        let scope = Scope::root("bench");
        let agents = AgentRegistry::new();
        let deps = Deps {
            agents: Some(agents.clone()),
        };
        let config = TasksConfig {
            max_concurrent_tasks_per_owner: MANY,
            ..TasksConfig::default()
        };
        let registry = TaskRegistry::install(&scope, deps, config)?;
        registry.attach_surface(&scope, "bench", Serves::Everyone)?;
        let mut tasks = Tasks {
            scope,
            registry,
            agents,
            owners: Vec::new(),
        };
        for number in 0..owners {
            let owner = tasks.another(&format!("owner-{number}"))?;
            tasks.owners.push(owner);
        }
        Ok(tasks)
    }

    /// One more agent, which does not take part in the turns.
    pub(crate) fn another(&self, id: &str) -> Result<AgentHandle, Failure> {
        Ok(self.agents.create(AgentSpec {
            id: SessionId::new(id),
            cwd: None,
            within: self.scope.clone(),
        })?)
    }

    /// The owner of the `n`th task: all take their turns.
    pub(crate) fn owner(&self, n: usize) -> Option<&Arc<Agent>> {
        Some(self.owners.get(n % self.owners.len())?.agent())
    }

    /// Starts a task that runs until the program ends, and says nothing but what `output` has.
    pub(crate) fn start_idle(
        &self,
        owner: &Arc<Agent>,
        output: Option<Arc<dyn OutputSource>>,
    ) -> Result<TaskId, Failure> {
        let spec = StartSpec::new("idle", "wait for something that never comes", || {
            let work = Work::new(std::future::pending(), |_| Ok(()));
            Ok(match output {
                Some(output) => work.output(output),
                None => work,
            })
        });
        Ok(self.registry.start(spec.owned_by(owner.clone()))?)
    }

    /// Starts a task that is over at once.
    pub(crate) fn start_trivial(&self, owner: &Arc<Agent>) -> Result<TaskId, Failure> {
        let spec = StartSpec::new("trivial", "a trivial task", || {
            Ok(Work::new(std::future::ready(Outcome::completed()), |_| Ok(())))
        });
        Ok(self.registry.start(spec.owned_by(owner.clone()))?)
    }
}
