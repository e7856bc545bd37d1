//! The tools that exist right now, for everybody and for single agents.
//!
//! **Invariants**
//! 1. A name is taken once among the shared tools, and once among those of an agent; there it takes the place of the
//!    shared one, for that agent alone.
//! 2. What was registered is gone when its scope has closed, that of an agent with the agent.
//!
//! Lock order: the registry's, then a scope's own (when an effect is registered). Foreign code runs under neither.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_agent::{Agent, InstanceId};
use dsh_scope::{EffectHandle, Scope};
use serde_json::Value;

use crate::error::{RegisterError, ToolError};
use crate::layer::{Hold, Layer, Own, Restriction};
use crate::pipeline::Deciders;
use crate::policy::{Approver, CallPolicy};
use crate::result::ToolResult;
use crate::tool::{Concurrency, Tool, ToolContext, ToolDefinition};
use crate::{parse_arguments, pipeline};

/// All registered tools, and the way to call them. Cheap to clone; clones share the tools.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: u64,
    shared: BTreeMap<String, Registered>,
    layers: HashMap<InstanceId, Layer>,
    policies: BTreeMap<u64, Arc<dyn CallPolicy>>,
}

#[derive(Clone)]
pub(crate) struct Registered {
    tool: Arc<dyn Tool>,
    definition: ToolDefinition,
}

/// What a removal leaves to be dropped outside the lock: it is foreign code.
type Removed = Option<Box<dyn Any + Send>>;

impl ToolRegistry {
    /// A registry without tools.
    pub fn new() -> ToolRegistry {
        ToolRegistry::default()
    }

    /// Offers `tool` to everybody until `scope` closes or the returned effect is disposed. Calls that run then go on.
    ///
    /// # Errors
    /// [`RegisterError::Duplicate`] if the name is taken, [`RegisterError::ScopeClosed`] if `scope` is closing.
    pub fn register(&self, scope: &Scope, tool: Arc<dyn Tool>) -> Result<EffectHandle, RegisterError> {
        let registered = Registered::new(tool);
        let name = registered.definition.name.clone();
        let mut state = self.lock();
        if state.shared.contains_key(&name) {
            return Err(RegisterError::Duplicate(name));
        }
        let removed = name.clone();
        let effect = self.effect(scope, format!("tools.register({name})"), move |state| {
            boxed(state.shared.remove(&removed))
        })?;
        state.shared.insert(name, registered);
        Ok(effect)
    }

    /// Offers `tool` to one agent, in place of a shared one of its name, until the agent is disposed or the returned
    /// effect is.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_for(&self, agent: &Agent, tool: Arc<dyn Tool>) -> Result<EffectHandle, RegisterError> {
        self.own(agent, tool, Hold::Restricted)
    }

    /// As [`register_for`](Self::register_for), and no restriction keeps the agent from it.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn grant(&self, agent: &Agent, tool: Arc<dyn Tool>) -> Result<EffectHandle, RegisterError> {
        self.own(agent, tool, Hold::Granted)
    }

    fn own(&self, agent: &Agent, tool: Arc<dyn Tool>, hold: Hold) -> Result<EffectHandle, RegisterError> {
        let registered = Registered::new(tool);
        let name = registered.definition.name.clone();
        let mut state = self.lock();
        let layer = state.layers.get(&agent.instance());
        if layer.is_some_and(|layer| layer.tools.contains_key(&name)) {
            return Err(RegisterError::Duplicate(name));
        }
        let removed = name.clone();
        let effect = self.layer_effect(agent, format!("tools.register({name})"), move |layer| {
            boxed(layer.tools.remove(&removed))
        })?;
        state.layer(agent).tools.insert(name, Own { registered, hold });
        Ok(effect)
    }

    /// Restricts which tools an agent may use, until the agent is disposed or the returned effect is.
    ///
    /// # Errors
    /// [`RegisterError::NothingRestricted`] when nothing is denied, [`RegisterError::UnknownTool`] for a name that is no tool
    /// of the agent's now, shared or its own, [`RegisterError::ScopeClosed`] if the agent is being disposed.
    pub fn restrict(&self, agent: &Agent, restriction: Restriction) -> Result<EffectHandle, RegisterError> {
        let names = restriction.names();
        let mut state = self.lock();
        if matches!(&restriction, Restriction::Deny(names) if names.is_empty()) {
            return Err(RegisterError::NothingRestricted);
        }
        let layer = state.layers.get(&agent.instance());
        let is_own = |name: &String| layer.is_some_and(|layer| layer.tools.contains_key(name));
        let is_tool = |name: &String| state.shared.contains_key(name) || is_own(name);
        if let Some(unknown) = names.iter().find(|name| !is_tool(name)) {
            return Err(RegisterError::UnknownTool(unknown.clone()));
        }
        let place = state.take_place();
        let effect = self.layer_effect(agent, "tools.restrict".to_owned(), move |layer| {
            boxed(layer.restrictions.remove(&place))
        })?;
        state.layer(agent).restrictions.insert(place, restriction);
        Ok(effect)
    }

    /// Keeps an agent from what another one is kept from now, until the agent is disposed: who works for somebody cannot have
    /// tools that that one may not use.
    ///
    /// # Errors
    /// [`RegisterError::ScopeClosed`] if the agent is being disposed.
    pub fn restrict_as(&self, agent: &Agent, other: &Agent) -> Result<(), RegisterError> {
        let mut state = self.lock();
        let others = state.layers.get(&other.instance());
        let others: Vec<Restriction> = others
            .into_iter()
            .flat_map(|layer| layer.restrictions.values().cloned())
            .collect();
        for restriction in others {
            let place = state.take_place();
            self.layer_effect(agent, "tools.restrict".to_owned(), move |layer| {
                boxed(layer.restrictions.remove(&place))
            })?;
            state.layer(agent).restrictions.insert(place, restriction);
        }
        Ok(())
    }

    /// Says who is asked about calls of an agent, until it is disposed or the returned effect is. The latest counts.
    ///
    /// # Errors
    /// [`RegisterError::ScopeClosed`] if the agent is being disposed.
    pub fn approver(
        &self,
        agent: &Agent,
        approver: Arc<dyn Approver>,
    ) -> Result<EffectHandle, RegisterError> {
        let mut state = self.lock();
        let place = state.take_place();
        let effect = self.layer_effect(agent, "tools.approver".to_owned(), move |layer| {
            boxed(layer.approvers.remove(&place))
        })?;
        state.layer(agent).approvers.insert(place, approver);
        Ok(effect)
    }

    /// Has every call decided about by `policy`, too, until `scope` closes or the returned effect is disposed.
    ///
    /// # Errors
    /// [`RegisterError::ScopeClosed`] if `scope` is closing.
    pub fn policy(&self, scope: &Scope, policy: Arc<dyn CallPolicy>) -> Result<EffectHandle, RegisterError> {
        let mut state = self.lock();
        let place = state.take_place();
        let effect = self.effect(scope, "tools.policy".to_owned(), move |state| {
            boxed(state.policies.remove(&place))
        })?;
        state.policies.insert(place, policy);
        Ok(effect)
    }

    /// What a model is told about each shared tool, ordered by name.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let state = self.lock();
        state
            .shared
            .values()
            .map(|known| known.definition.clone())
            .collect()
    }

    /// What the model of an agent is told about each tool that it may use, ordered by name.
    pub fn definitions_for(&self, agent: &Agent) -> Vec<ToolDefinition> {
        let state = self.lock();
        let layer = state.layers.get(&agent.instance());
        let permitted = |name: &str| layer.is_none_or(|layer| layer.permits(name));
        let shared = state.shared.iter().filter(|(name, _)| permitted(name));
        let own = layer.into_iter().flat_map(|layer| {
            let names = layer.tools.keys();
            names.filter_map(|name| Some((name, layer.own(name)?)))
        });
        let own = own.filter_map(|(name, (known, usable))| usable.then_some((name, known)));
        // Of two with one name the agent's own comes later, and stays.
        let known: BTreeMap<&String, &Registered> = shared.chain(own).collect();
        known
            .into_values()
            .map(|known| known.definition.clone())
            .collect()
    }

    /// The shared tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let state = self.lock();
        state.shared.get(name).map(|known| Arc::clone(&known.tool))
    }

    /// The tool that an agent means by that name, if it may use it.
    pub fn get_for(&self, agent: &Agent, name: &str) -> Option<Arc<dyn Tool>> {
        let state = self.lock();
        let layer = state.layers.get(&agent.instance());
        let known = match layer.and_then(|layer| layer.own(name)) {
            Some((own, usable)) => usable.then_some(own),
            None => {
                let permitted = layer.is_none_or(|layer| layer.permits(name));
                state.shared.get(name).filter(|_| permitted)
            }
        };
        known.map(|known| Arc::clone(&known.tool))
    }

    /// Whether a call by `agent` may overlap with others. What is no tool, and a tool that panics when it is asked, runs
    /// alone.
    pub fn concurrency(&self, agent: &Agent, name: &str, args: &Value) -> Concurrency {
        let Some(tool) = self.get_for(agent, name) else {
            return Concurrency::Exclusive;
        };
        let args = parse_arguments(args.clone());
        dsh_scope::contain(|| tool.concurrency(&args)).unwrap_or(Concurrency::Exclusive)
    }

    /// Calls a tool: that of [`ToolContext::caller`], if there is one. Whatever goes wrong is in the result; this never
    /// fails.
    ///
    /// `args` is a JSON object, or the text of one as a model streamed it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the tool's body wherever it stands and abandons all deliveries. To give a call
    /// up in an orderly way cancel [`ToolContext::token`] and await the result.
    pub async fn execute(&self, name: &str, args: Value, ctx: ToolContext) -> ToolResult {
        let tool = match &ctx.caller {
            Some(agent) => self.get_for(agent, name),
            None => self.get(name),
        };
        let Some(tool) = tool else {
            return ToolError::unknown_tool(name).into();
        };
        let deciders = self.deciders(&ctx);
        pipeline::run(name, tool.as_ref(), args, ctx, &deciders).await
    }

    fn deciders(&self, ctx: &ToolContext) -> Deciders {
        let state = self.lock();
        let caller = ctx.caller.as_ref();
        let layer = caller.and_then(|agent| state.layers.get(&agent.instance()));
        let latest = layer.and_then(|layer| layer.approvers.values().next_back());
        Deciders {
            policies: state.policies.values().cloned().collect(),
            approver: latest.cloned(),
        }
    }

    /// As [`effect`](Self::effect), for what an agent has of its own.
    fn layer_effect(
        &self,
        agent: &Agent,
        label: String,
        remove: impl FnOnce(&mut Layer) -> Removed + Send + 'static,
    ) -> Result<EffectHandle, RegisterError> {
        let instance = agent.instance();
        self.effect(agent.scope(), label, move |state| {
            let layer = state.layers.get_mut(&instance)?;
            let removed = remove(layer);
            if layer.is_empty() {
                state.layers.remove(&instance);
            }
            removed
        })
    }

    /// Removes again when the scope closes. To be called under the lock and before the insertion, which thus comes before
    /// the removal whenever the scope closes.
    fn effect(
        &self,
        scope: &Scope,
        label: String,
        remove: impl FnOnce(&mut State) -> Removed + Send + 'static,
    ) -> Result<EffectHandle, RegisterError> {
        // Weak: a scope that outlives the registry must not keep it.
        let state = Arc::downgrade(&self.state);
        let disposer = move || async move {
            let removed = state.upgrade().and_then(|state| remove(&mut lock(&state)));
            drop(removed);
        };
        scope
            .effect(label.clone(), disposer)
            .map_err(|_| RegisterError::ScopeClosed {
                label,
                scope: scope.name().to_owned(),
            })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn take_place(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn layer(&mut self, agent: &Agent) -> &mut Layer {
        self.layers.entry(agent.instance()).or_default()
    }
}

impl Registered {
    fn new(tool: Arc<dyn Tool>) -> Self {
        let definition = tool.definition();
        Self { tool, definition }
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry").finish_non_exhaustive()
    }
}

fn boxed<T: Send + 'static>(removed: Option<T>) -> Removed {
    removed.map(|removed| Box::new(removed) as Box<dyn Any + Send>)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
