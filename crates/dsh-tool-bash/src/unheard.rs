//! A start whose answer reaches nobody.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_tasks::{TaskId, TaskRegistry};
use dsh_tools::Delivery;

/// Ends a task if the result that names it is dropped: whoever cancelled the call cannot know the id. The end is then
/// told like any other, so that nothing happens behind the owner's back.
pub(crate) fn end_if_unheard(tasks: &TaskRegistry, id: &TaskId, owner: Option<&Arc<Agent>>) -> Delivery {
    let start = Start {
        tasks: tasks.clone(),
        id: id.clone(),
        owner: owner.cloned(),
        heard: false,
    };
    Delivery::new(move || start.was_heard())
}

struct Start {
    tasks: TaskRegistry,
    id: TaskId,
    owner: Option<Arc<Agent>>,
    heard: bool,
}

impl Start {
    fn was_heard(mut self) {
        self.heard = true;
    }
}

impl Drop for Start {
    fn drop(&mut self) {
        if self.heard {
            return;
        }
        // The claim of the kill is dropped, too: nobody was told of it either. A refusal means that the task is gone.
        match self.tasks.kill(
            &self.id,
            self.owner.as_ref(),
            Some("the answer to its start was dropped"),
        ) {
            Ok(_) => tracing::info!(id = %self.id, "the answer to a start was dropped: its task is ended"),
            Err(error) => tracing::debug!(id = %self.id, %error, "the answer to a start was dropped"),
        }
    }
}
