//! A final-output producer, as `docs/producer-contract.md` describes it.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_tasks::{Outcome, StartError, StartSpec, TaskId, TaskRegistry, Work};
use tokio_util::sync::CancellationToken;

/// Starts a piece of work that has nothing to show until it is done, and then has its result.
pub(crate) fn start(tasks: &TaskRegistry, owner: Arc<Agent>) -> Result<TaskId, StartError> {
    let run = || {
        let stop = CancellationToken::new();
        let asked = stop.clone();
        let done = async move {
            let sums = tokio::task::spawn_blocking(|| format!("2 + 2 is {}, and 6 * 7 is {}", 2 + 2, 6 * 7));
            tokio::select! {
                () = asked.cancelled() => Outcome::killed(),
                sums = sums => match sums {
                    Ok(text) => Outcome::completed().output(text),
                    Err(error) => Outcome::failed().detail(error.to_string()),
                },
            }
        };
        let cancel = move |_: &dsh_tasks::CancelRequest| {
            stop.cancel();
            Ok(())
        };
        Ok(Work::new(done, cancel))
    };
    tasks.start(StartSpec::new("report", "Add some numbers", run).owned_by(owner))
}
