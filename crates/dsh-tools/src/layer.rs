//! What one agent has of its own, and what it may use of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::policy::Approver;
use crate::registry::Registered;

/// Which tools an agent may use: shared ones, and its own unless they were [granted](crate::ToolRegistry::grant). Several
/// restrictions all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restriction {
    /// Only these; none at all without a name.
    Allow(BTreeSet<String>),
    /// All but these.
    Deny(BTreeSet<String>),
}

#[derive(Default)]
pub(crate) struct Layer {
    pub(crate) tools: BTreeMap<String, Own>,
    pub(crate) restrictions: BTreeMap<u64, Restriction>,
    pub(crate) approvers: BTreeMap<u64, Arc<dyn Approver>>,
}

/// A tool of an agent's own.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) registered: Registered,
    pub(crate) hold: Hold,
}

/// Whether restrictions concern a tool of an agent's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Restricted,
    Granted,
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
    /// The agent's own tool of this name, and whether it may use it.
    pub(crate) fn own(&self, name: &str) -> Option<(&Registered, bool)> {
        let own = self.tools.get(name)?;
        let usable = match own.hold {
            Hold::Granted => true,
            Hold::Restricted => self.permits(name),
        };
        Some((&own.registered, usable))
    }

    pub(crate) fn permits(&self, name: &str) -> bool {
        self.restrictions
            .values()
            .all(|restriction| restriction.permits(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.restrictions.is_empty() && self.approvers.is_empty()
    }
}
