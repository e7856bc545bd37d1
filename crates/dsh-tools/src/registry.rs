//! The tools that exist right now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dsh_scope::{EffectHandle, Scope};
use serde_json::Value;

use crate::error::{RegisterError, ToolError};
use crate::pipeline;
use crate::result::ToolResult;
use crate::tool::{Tool, ToolContext, ToolDefinition};

/// All registered tools, and the way to call them. Cheap to clone; clones share the tools.
#[derive(Clone, Default)]
pub struct ToolRegistry {
    inner: Arc<Inner>,
}

type Inner = Mutex<BTreeMap<String, Registered>>;

struct Registered {
    tool: Arc<dyn Tool>,
    definition: ToolDefinition,
}

impl ToolRegistry {
    /// A registry without tools.
    pub fn new() -> ToolRegistry {
        ToolRegistry::default()
    }

    /// Offers `tool` until `scope` closes or the returned effect is disposed. Calls that run then go on.
    ///
    /// # Errors
    /// [`RegisterError::Duplicate`] if the name is taken, [`RegisterError::ScopeClosed`] if `scope` is closing.
    pub fn register(&self, scope: &Scope, tool: Arc<dyn Tool>) -> Result<EffectHandle, RegisterError> {
        let definition = tool.definition();
        let name = definition.name.clone();
        match lock(&self.inner).entry(name.clone()) {
            Entry::Occupied(_) => return Err(RegisterError::Duplicate(name)),
            Entry::Vacant(vacant) => vacant.insert(Registered { tool, definition }),
        };
        let registry = Arc::downgrade(&self.inner);
        let registered = name.clone();
        scope
            .effect(format!("tools.register({name})"), move || async move {
                remove(&registry, &registered)
            })
            .map_err(|_| {
                remove(&Arc::downgrade(&self.inner), &name);
                RegisterError::ScopeClosed {
                    tool: name,
                    scope: scope.name().to_owned(),
                }
            })
    }

    /// What the model is told about each tool, ordered by name.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        lock(&self.inner)
            .values()
            .map(|registered| registered.definition.clone())
            .collect()
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        lock(&self.inner)
            .get(name)
            .map(|registered| Arc::clone(&registered.tool))
    }

    /// Calls a tool. Whatever goes wrong is in the result; this never fails.
    ///
    /// `args` is a JSON object, or the text of one as a model streamed it.
    ///
    /// # Cancel safety
    /// Dropping the future drops the tool's body wherever it stands and abandons all deliveries. To give a call
    /// up in an orderly way cancel [`ToolContext::token`] and await the result.
    pub async fn execute(&self, name: &str, args: Value, ctx: ToolContext) -> ToolResult {
        match self.get(name) {
            Some(tool) => pipeline::run(name, tool.as_ref(), args, ctx).await,
            None => ToolError::unknown_tool(name).into(),
        }
    }
}

fn lock(inner: &Inner) -> MutexGuard<'_, BTreeMap<String, Registered>> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn remove(registry: &Weak<Inner>, name: &str) {
    // The entry is dropped outside the lock: a tool's own `Drop` is foreign code.
    let removed = registry.upgrade().and_then(|inner| lock(&inner).remove(name));
    drop(removed);
}
