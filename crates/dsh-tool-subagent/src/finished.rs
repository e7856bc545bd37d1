//! The end of a run, and its release.

use dsh_subagent::{Run, RunFault, RunResult};

/// How a run ended, and whether it was released. The release comes before the telling.
pub(crate) struct Finished {
    pub(crate) result: Result<RunResult, RunFault>,
    pub(crate) disposed: Result<(), RunFault>,
}

/// Awaits the end of a run and its release. When this future is dropped, the run is released all the same.
pub(crate) async fn finished(run: Run) -> Finished {
    let run = run.drop_guard();
    let result = run.result().await;
    let disposed = run.dispose().await;
    Finished { result, disposed }
}
