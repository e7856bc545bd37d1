//! Who runs commands.

use std::sync::Arc;

use crate::{BashProcess, BashRequest, BashSpec, ResolveError, StartError};

/// Runs shell commands somewhere.
pub trait BashExecutor: Send + Sync + 'static {
    /// Applies this executor's defaults and caps; touches nothing.
    ///
    /// # Errors
    ///
    /// [`ResolveError`] for a request that no executor, or not this one, could run.
    fn resolve(&self, request: BashRequest) -> Result<BashSpec, ResolveError>;

    /// Starts a resolved command and returns its handle at once. Neither `timeout` nor `deadline` is enforced here:
    /// time belongs to whoever waits ([`run`](crate::run), [`ended_within`](crate::ended_within)).
    ///
    /// What goes wrong after this call (no shell, no memory for a process) is not an error of it: the process ends
    /// with [`ShellExit::Failed`](crate::ShellExit::Failed).
    ///
    /// # Errors
    ///
    /// [`StartError`] when the command cannot be run at all; nothing was started then.
    fn start(&self, spec: &BashSpec) -> Result<Arc<dyn BashProcess>, StartError>;

    /// Skips the grace of every end that was asked for or will be: somebody is impatient. Does nothing for an executor
    /// without a grace.
    fn hurry(&self) {}
}
