//! Who runs commands.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{BashProcess, BashRequest, BashSpec, ResolveError, StartError};

/// Runs shell commands somewhere.
#[async_trait]
pub trait BashExecutor: Send + Sync + 'static {
    /// Applies this executor's defaults and caps; touches nothing.
    ///
    /// # Errors
    ///
    /// [`ResolveError`] for a request that no executor, or not this one, could run.
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError>;

    /// Looks whether a resolved command can be started, as far as one has to ask somebody for that: a file system, say,
    /// which may take any time to answer. Who waits decides for how long ([`checked`](crate::checked)).
    ///
    /// # Errors
    ///
    /// [`StartError`] when the command cannot be run; nothing was started.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    async fn check(&self, _spec: &BashSpec) -> Result<(), StartError> {
        Ok(())
    }

    /// Starts a resolved command and returns its handle at once; asks nobody, so [`check`](Self::check) comes before. Neither `timeout` nor `deadline` is enforced here:
    /// time belongs to whoever waits ([`run`](crate::run), [`ended_within`](crate::ended_within)).
    ///
    /// What goes wrong after this call (no shell, no memory for a process, a directory that went after it was looked at)
    /// is not an error of it: the process ends with [`ShellExit::Failed`](crate::ShellExit::Failed).
    ///
    /// # Errors
    ///
    /// [`StartError`] when the command cannot be run at all; nothing was started then.
    fn start(&self, spec: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError>;

    /// Skips the grace of every end that was asked for or will be: somebody is impatient. Does nothing for an executor
    /// without a grace.
    fn hurry(&self) {}
}
