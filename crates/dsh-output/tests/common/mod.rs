//! A log with a small memory and a spill directory of its own.
#![expect(dead_code, reason = "every test binary uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a helper of tests fails its test")]

use std::sync::Arc;

use dsh_output::{LogReader, OutputConfig, OutputLog, OutputSource, Rendering, SpillConfig, SpillDir};

pub(crate) struct Spilling {
    pub(crate) log: OutputLog,
    pub(crate) dir: Arc<SpillDir>,
    pub(crate) base: tempfile::TempDir,
}

pub(crate) fn spilling(memory_bytes: usize, max_bytes: u64) -> Spilling {
    let base = tempfile::tempdir().unwrap();
    let dir = SpillDir::create_in(base.path(), u64::MAX).unwrap();
    let spill = Some(SpillConfig {
        dir: dir.clone(),
        max_bytes,
    });
    Spilling {
        log: OutputLog::new(OutputConfig { memory_bytes, spill }),
        dir,
        base,
    }
}

pub(crate) fn in_memory(memory_bytes: usize) -> OutputLog {
    OutputLog::new(OutputConfig {
        memory_bytes,
        spill: None,
    })
}

pub(crate) fn sections(log: &OutputLog) -> LogReader {
    log.reader(Rendering::Sections)
}

/// The text of everything.
pub(crate) fn whole(log: &OutputLog) -> String {
    sections(log).read_from(0, usize::MAX).text
}

/// `text` with the path of the spill file replaced by `FILE`.
pub(crate) fn masked(log: &OutputLog, text: &str) -> String {
    match log.spill_path() {
        Some(path) => text.replace(path.to_str().unwrap(), "FILE"),
        None => text.to_owned(),
    }
}
