//! The files that results point to.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use dsh_output::OutputLog;

/// How many long outputs of foreground commands stay on disk.
const KEPT: usize = 20;

/// Keeps the last long outputs: a result that names a file is read after its command, and its log, would be gone. What a
/// background task has output is kept with the task, not here.
#[derive(Default)]
pub(crate) struct KeptOutputs(Mutex<VecDeque<OutputLog>>);

impl KeptOutputs {
    /// Keeps `log` if it has a file, and lets the oldest go when there are too many.
    pub(crate) fn keep(&self, log: &OutputLog) {
        if log.spill_path().is_none() {
            return;
        }
        let oldest = {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(log.clone());
            if kept.len() > KEPT { kept.pop_front() } else { None }
        };
        // Removes a file, so not under the lock.
        drop(oldest);
    }
}
