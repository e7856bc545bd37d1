//! A start whose answer reaches nobody.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_tasks::{TaskId, TaskRegistry};
use dsh_tools::Delivery;

/// Ends a task if the result that names it is dropped: whoever cancelled the call cannot know the id.
pub(crate) fn end_if_unheard(tasks: &TaskRegistry, id: &TaskId, owner: Option<&Arc<Agent>>) -> Delivery {
    let claim = tasks.claim_start(id, owner);
    Delivery::new(move || claim.deliver())
}
