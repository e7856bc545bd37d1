//! A run that is released, whatever becomes of who holds it.

use std::sync::Arc;

use dsh_agent::Agent;
use dsh_subagent::{Run, RunFault, RunResult};

/// How a run ended, and whether it was released. The release comes before the telling.
pub(crate) struct Finished {
    pub(crate) result: Result<RunResult, RunFault>,
    pub(crate) disposed: Result<(), RunFault>,
}

/// Awaits the end of a run and its release. When this future is dropped, the run is released all the same.
pub(crate) async fn finished(run: &Run, parent: &Arc<Agent>) -> Finished {
    let held = Held {
        run: run.clone(),
        parent: Arc::clone(parent),
        released: false,
    };
    let result = run.result().await;
    let disposed = run.dispose().await;
    held.done();
    Finished { result, disposed }
}

struct Held {
    run: Run,
    parent: Arc<Agent>,
    released: bool,
}

impl Held {
    fn done(mut self) {
        self.released = true;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.released {
            return;
        }
        self.run.cancel();
        let run = self.run.clone();
        let release = async move {
            // A release that failed is in the log already.
            let _ = run.dispose().await;
        };
        // A parent that is being disposed refuses this, and releases its runs itself.
        let _ = self.parent.scope().spawn("release of a subagent", release);
    }
}
