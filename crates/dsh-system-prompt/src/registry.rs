//! The registry, which registers on scopes and assembles.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use dsh_scope::{EffectHandle, Scope};

use crate::{
    AssembleError, RegisterError, Section, Variable,
    variable::{is_name, substitute},
};

/// The sections and variables of one system prompt. Cloning gives another handle to the same registry.
#[derive(Clone, Default)]
pub struct PromptRegistry {
    // Lock order: this, then a scope's own lock (when an effect is registered).
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    next: u64,
    sections: BTreeMap<(i32, u64), Section>,
    variables: BTreeMap<String, Option<String>>,
}

impl PromptRegistry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a section for as long as the scope lives, or until the handle is disposed.
    ///
    /// # Errors
    ///
    /// [`RegisterError::DuplicateSection`] or [`RegisterError::ScopeClosed`].
    pub fn section(&self, scope: &Scope, section: Section) -> Result<EffectHandle, RegisterError> {
        let mut state = self.lock();
        if state.sections.values().any(|known| known.name == section.name) {
            return Err(RegisterError::DuplicateSection(section.name));
        }
        let place = (section.order, state.next);
        let handle = self.on(scope, format!("prompt section {}", section.name), move |state| {
            state.sections.remove(&place);
        })?;
        state.next += 1;
        state.sections.insert(place, section);
        Ok(handle)
    }

    /// Adds a variable for as long as the scope lives, or until the handle is disposed.
    ///
    /// # Errors
    ///
    /// [`RegisterError::VariableName`], [`RegisterError::DuplicateVariable`] or [`RegisterError::ScopeClosed`].
    pub fn variable(&self, scope: &Scope, variable: Variable) -> Result<EffectHandle, RegisterError> {
        let Variable { name, value } = variable;
        if !is_name(&name) {
            return Err(RegisterError::VariableName(name));
        }
        let mut state = self.lock();
        if state.variables.contains_key(&name) {
            return Err(RegisterError::DuplicateVariable(name));
        }
        let removed = name.clone();
        let handle = self.on(scope, format!("prompt variable {name}"), move |state| {
            state.variables.remove(&removed);
        })?;
        state.variables.insert(name, value);
        Ok(handle)
    }

    /// The sections in the order of the prompt, their references not replaced.
    pub fn sections(&self) -> Vec<Section> {
        self.lock().sections.values().cloned().collect()
    }

    /// The prompt.
    ///
    /// # Errors
    ///
    /// The first reference that stands for nothing, with the name of its section.
    pub fn assemble(&self) -> Result<String, AssembleError> {
        self.assemble_with(&[], &[])
    }

    /// The prompt with sections and variables of one reader's own. One of these takes the place of a registered one of
    /// the same name; a section has its own order then.
    ///
    /// # Errors
    ///
    /// The first reference that stands for nothing, with the name of its section.
    pub fn assemble_with(
        &self,
        sections: &[Section],
        variables: &[Variable],
    ) -> Result<String, AssembleError> {
        let state = self.lock();
        let shared = state.variables.iter();
        let mut values: HashMap<&str, Option<&str>> = shared
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        values.extend(
            variables
                .iter()
                .map(|own| (own.name.as_str(), own.value.as_deref())),
        );
        let is_shadowed = |section: &&Section| sections.iter().any(|own| own.name == section.name);
        let shared = state.sections.values().filter(|section| !is_shadowed(section));
        let mut all: Vec<&Section> = shared.chain(sections).collect();
        // Stable: with the same order, shared ones first, each in the order of its registration.
        all.sort_by_key(|section| section.order);
        let mut texts = Vec::with_capacity(all.len());
        for section in all {
            texts.push(substitute(section, &values)?);
        }
        texts.retain(|text| !text.is_empty());
        Ok(texts.join("\n\n"))
    }

    fn on(
        &self,
        scope: &Scope,
        label: String,
        remove: impl FnOnce(&mut State) + Send + 'static,
    ) -> Result<EffectHandle, RegisterError> {
        // Weak: a scope that outlives the registry must not keep it.
        let state = Arc::downgrade(&self.state);
        let disposer = move || async move {
            if let Some(state) = state.upgrade() {
                remove(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
            }
        };
        Ok(scope
            .effect(label, disposer)
            .map_err(|refused| refused.discard())?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PromptRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptRegistry").finish_non_exhaustive()
    }
}
