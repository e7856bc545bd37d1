//! Which tools a child has.

use dsh_agent::{Agent, BoxError};
use dsh_subagent::ToolFilter;
use dsh_tools::{RegisterError, Restriction, ToolRegistry};

/// A name in a filter that is no tool's.
#[derive(Debug, thiserror::Error)]
#[error("unknown global tool \"{0}\"")]
struct UnknownTool(String);

/// Keeps an agent from the tools that a filter leaves out, those that come later included.
pub(crate) fn apply(tools: &ToolRegistry, agent: &Agent, filter: ToolFilter) -> Result<(), BoxError> {
    let ToolFilter { allow, deny } = filter;
    let allow = allow.map(|names| Restriction::Allow(names.into_iter().collect()));
    // To deny nothing is no restriction.
    let deny = deny.filter(|names| !names.is_empty());
    let deny = deny.map(|names| Restriction::Deny(names.into_iter().collect()));
    for restriction in allow.into_iter().chain(deny) {
        match tools.restrict(agent, restriction) {
            Ok(_) => {}
            Err(RegisterError::UnknownTool(name)) => return Err(UnknownTool(name).into()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
