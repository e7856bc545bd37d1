//! What a log may use: memory, and optionally a file.

use std::sync::Arc;

use crate::SpillDir;

/// The budgets of one [`OutputLog`](crate::OutputLog).
#[derive(Clone, Debug)]
pub struct OutputConfig {
    /// Bytes kept in memory: the first half of it holds the head of the stream, the rest its tail.
    pub memory_bytes: usize,
    /// Where the complete stream goes once it no longer fits in memory; `None` keeps everything in memory.
    pub spill: Option<SpillConfig>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self {
            memory_bytes: 64_000,
            spill: None,
        }
    }
}

/// The spill file of one log.
#[derive(Clone, Debug)]
pub struct SpillConfig {
    /// The directory of this process, shared by all its logs.
    pub dir: Arc<SpillDir>,
    /// Bytes the file may grow to, if the directory has room for them. The file keeps the stream from byte 0 up to here; what comes later stays
    /// readable only as long as the memory tail holds it.
    pub max_bytes: u64,
}
