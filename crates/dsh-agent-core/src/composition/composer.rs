//! From a session to an agent with what its preset gives it.
//!
//! # Invariants
//!
//! 1. An agent keeps the preset that it was composed from; its children have the same, whatever became of the file.
//! 2. An agent has the tools of its preset before it is driven, or there is no agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent::{Agent, BoxError, ChildPlan, InstanceId};
use dsh_agent_loop::{AgentLoop, AgentPlan, CreateError, LedAgent, ModelChoice, ModelSeat};
use dsh_scope::{Scope, ScopeClosed};
use dsh_session::Session;
use dsh_subagent::SubagentRegistry;
use dsh_system_prompt::Section;
use dsh_tasks::TaskRegistry;
use dsh_tool_subagent::ToolSubagentConfig;
use dsh_tools::{Approver, Restriction, ToolRegistry};

use super::preset::{Preset, ToolKind, ToolRow};
use super::{Ground, Presets};
use crate::config::BASH;
use crate::continuity;
use crate::prompt::{self, Place};

/// Makes agents of sessions. Children are made by it, too.
pub(crate) struct Composer {
    pub(crate) scope: Scope,
    pub(crate) agent_loop: AgentLoop,
    pub(crate) tools: ToolRegistry,
    pub(crate) subagents: SubagentRegistry,
    pub(crate) tasks: TaskRegistry,
    /// Whether the tools that control tasks are there.
    pub(crate) control: Control,
    pub(crate) ground: Ground,
    pub(crate) presets: Presets,
    /// The preset of sessions that name none.
    pub(crate) preset: String,
    pub(crate) model: ModelChoice,
    pub(crate) persona: Arc<str>,
    pub(crate) known: Mutex<HashMap<InstanceId, Known>>,
}

/// Whether the tools that control tasks are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Attached,
    Off,
}

/// What an agent was composed of.
#[derive(Clone)]
pub(crate) struct Known {
    preset: Arc<Preset>,
    model: Option<ModelSeat>,
}

/// Whose agent it is.
pub(crate) enum Role {
    /// That of a person or a client, who may be asked about its calls.
    Lead(Option<Arc<dyn Approver>>),
    /// Another agent's.
    Child(Box<ChildPlan>),
}

impl Composer {
    /// Gives an agent that somebody else leads the tools of its preset.
    pub(crate) fn compose(self: &Arc<Self>, agent: &Arc<Agent>) -> Result<(), BoxError> {
        let preset = self.preset_of(agent.session())?;
        self.furnish(agent, &preset)?;
        self.remember(agent, Known { preset, model: None })
    }

    /// An agent with a driver.
    pub(crate) async fn lead(
        self: &Arc<Self>,
        session: Session,
        role: Role,
    ) -> Result<LedAgent, CreateError> {
        let place = match session.cwd() {
            Some(_) => Place::Known,
            None => Place::Unknown,
        };
        let mut plan = AgentPlan::new(session, self.model.clone(), self.scope.clone());
        let mut parent = None;
        let (preset, setup, persona) = match role {
            Role::Lead(approver) => {
                plan.approver = approver;
                let preset = self.preset_of(&plan.session).map_err(CreateError::Compose)?;
                let setup = continuity::compose(self.tasks.clone());
                (preset, Some(setup), None)
            }
            Role::Child(child) => {
                let known = self.known_of(&child.parent);
                let preset = match &known {
                    Some(known) => Arc::clone(&known.preset),
                    None => self.preset_of(&plan.session).map_err(CreateError::Compose)?,
                };
                plan.within = child.parent.scope().clone();
                plan.model = routed(known.and_then(|known| known.model), &self.model, &child);
                parent = Some(Arc::clone(&child.parent));
                let instructions = child.instructions.into_iter();
                plan.sections
                    .extend(instructions.map(|one| Section::new(one.name, one.order, one.text)));
                (preset, child.setup, child.persona)
            }
        };
        let persona = persona
            .as_deref()
            .or(preset.persona.as_deref())
            .unwrap_or(&self.persona);
        plan.sections.extend(prompt::sections(place, persona));
        let (composer, furnished) = (Arc::clone(self), Arc::clone(&preset));
        plan.compose = Some(Box::new(move |agent| {
            Box::pin(async move {
                composer.furnish(&agent, &furnished)?;
                if let Some(parent) = parent {
                    composer.tools.restrict_as(&agent, &parent)?;
                }
                match setup {
                    Some(setup) => setup(agent).await,
                    None => Ok(()),
                }
            })
        }));
        let led = self.agent_loop.create(plan).await?;
        let known = Known {
            preset,
            model: Some(led.model_seat()),
        };
        match self.remember(led.agent(), known) {
            Ok(()) => Ok(led),
            Err(error) => {
                led.dispose().await.map_err(CreateError::Disposal)?;
                Err(CreateError::Compose(error))
            }
        }
    }

    /// The preset that a session names, or the one of all others, as it is now.
    fn preset_of(&self, session: &Session) -> Result<Arc<Preset>, BoxError> {
        let id = session.header().preset.as_deref().unwrap_or(&self.preset);
        Ok(Arc::new(self.ground.preset(&self.presets, id)?))
    }

    /// Gives an agent the tools of its preset.
    fn furnish(&self, agent: &Arc<Agent>, preset: &Preset) -> Result<(), BoxError> {
        let rows = preset.rows.iter().filter(|row| !row.disabled);
        let mut has_bash = false;
        for row in rows {
            match &row.tool {
                ToolKind::Bash => has_bash = true,
                ToolKind::Subagent(config) => {
                    let deps = dsh_tool_subagent::Deps {
                        tools: self.tools.clone(),
                        subagents: self.subagents.clone(),
                        tasks: match self.control {
                            Control::Attached => Some(self.tasks.clone()),
                            Control::Off => None,
                        },
                    };
                    let config = self.as_offered(config, preset);
                    drop(dsh_tool_subagent::install_for(agent, deps, config)?);
                }
            }
        }
        if !has_bash {
            drop(
                self.tools
                    .restrict(agent, Restriction::Deny([BASH.to_owned()].into()))?,
            );
        }
        Ok(())
    }

    /// A filter names tools of its preset that are not there, too: their rows are switched off, or their providers are not
    /// mounted. Nobody has to be kept from those, and the seam knows none of them.
    fn as_offered(&self, config: &ToolSubagentConfig, preset: &Preset) -> ToolSubagentConfig {
        let mut config = config.clone();
        let (offered, absent): (Vec<_>, Vec<_>) = preset.rows.iter().partition(|row| self.offers(row));
        let has = |rows: &[&ToolRow], name: &str| rows.iter().any(|row| row.tool.tool_name() == name);
        if let Some(filter) = &mut config.tool_filter {
            for names in [&mut filter.allow, &mut filter.deny].into_iter().flatten() {
                names.retain(|name| has(&offered, name) || !has(&absent, name));
            }
        }
        config
    }

    /// Whether agents have the tool of a row now.
    fn offers(&self, row: &ToolRow) -> bool {
        match &row.tool {
            // The host's: a preset without it only denies it.
            ToolKind::Bash => true,
            ToolKind::Subagent(config) => !row.disabled && self.subagents.info(&config.provider).is_some(),
        }
    }

    fn known_of(&self, agent: &Agent) -> Option<Known> {
        self.known().get(&agent.instance()).cloned()
    }

    /// For as long as the agent lives.
    fn remember(self: &Arc<Self>, agent: &Agent, known: Known) -> Result<(), BoxError> {
        let (composer, instance) = (Arc::downgrade(self), agent.instance());
        self.known().insert(instance, known);
        let forget = move || async move {
            if let Some(composer) = composer.upgrade() {
                composer.known().remove(&instance);
            }
        };
        match agent.scope().effect("what the agent is composed of", forget) {
            Ok(_) => Ok(()),
            Err(closed) => {
                self.known().remove(&instance);
                Err(ScopeClosed::discard(closed).into())
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<InstanceId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parent's model, as far as the child does not have another one.
fn routed(parent: Option<ModelSeat>, model: &ModelChoice, child: &ChildPlan) -> ModelChoice {
    let mut choice = parent.map_or_else(|| model.clone(), |seat| seat.get());
    let route = &child.model;
    if let Some(provider) = &route.provider {
        choice.provider.clone_from(provider);
    }
    if let Some(model) = &route.model {
        choice.model.clone_from(model);
    }
    if route.max_tokens.is_some() {
        choice.sampling.max_tokens = route.max_tokens;
    }
    choice
}
