//! What one agent has of its own, and what it may use of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::policy::Approver;
use crate::registry::Registered;

/// Which of the shared tools an agent may use. Several restrictions all hold; tools of the agent's own are not concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restriction {
    /// Only these.
    Allow(BTreeSet<String>),
    /// All but these.
    Deny(BTreeSet<String>),
}

#[derive(Default)]
pub(crate) struct Layer {
    pub(crate) tools: BTreeMap<String, Registered>,
    pub(crate) restrictions: BTreeMap<u64, Restriction>,
    pub(crate) approvers: BTreeMap<u64, Arc<dyn Approver>>,
}

impl Restriction {
    /// The names in it.
    pub(crate) fn names(&self) -> &BTreeSet<String> {
        match self {
            Self::Allow(names) | Self::Deny(names) => names,
        }
    }

    fn permits(&self, name: &str) -> bool {
        match self {
            Self::Allow(names) => names.contains(name),
            Self::Deny(names) => !names.contains(name),
        }
    }
}

impl Layer {
    pub(crate) fn permits(&self, name: &str) -> bool {
        self.restrictions
            .values()
            .all(|restriction| restriction.permits(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.restrictions.is_empty() && self.approvers.is_empty()
    }
}
