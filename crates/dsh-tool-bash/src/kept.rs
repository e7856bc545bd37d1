//! The files that results point to.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use dsh_output::OutputLog;

/// How many long outputs of foreground commands stay on disk.
const KEPT: usize = 20;
/// How many bytes of files they take together at most. Whatever runs needs room on disk, too.
const KEPT_BYTES: u64 = 256 * 1024 * 1024;

/// Keeps the last long outputs: a result that names a file is read after its command, and its log, would be gone. What a
/// background task has output is kept with the task, not here.
#[derive(Default)]
pub(crate) struct KeptOutputs(Mutex<VecDeque<Kept>>);

struct Kept {
    log: OutputLog,
    /// What its file had when it came.
    bytes: u64,
}

impl KeptOutputs {
    /// Keeps `log` if it has a file, and lets the oldest go when there are too many, or too large ones. The last one stays
    /// whatever its size.
    pub(crate) fn keep(&self, log: &OutputLog) {
        self.keep_within(log, KEPT_BYTES);
    }

    fn keep_within(&self, log: &OutputLog, room: u64) {
        let Some(path) = log.spill_path() else {
            return;
        };
        let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
        let log = log.clone();
        let mut gone = Vec::new();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Kept { log, bytes });
        let mut taken: u64 = kept.iter().map(|kept| kept.bytes).sum();
        while kept.len() > KEPT || (taken > room && kept.len() > 1) {
            let Some(oldest) = kept.pop_front() else { break };
            taken -= oldest.bytes;
            gone.push(oldest.log);
        }
        drop(kept);
        // Removes files, so not under the lock.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use dsh_output::{OutputConfig, SpillConfig, SpillDir, Stream};

    use super::*;

    #[test]
    fn large_outputs_make_room_before_there_are_too_many() {
        let base = tempfile::tempdir().unwrap();
        let dir = SpillDir::create_in(base.path(), 1_000).unwrap();
        let kept = KeptOutputs::default();
        let paths: Vec<_> = [60, 60, 60, 200]
            .into_iter()
            .map(|bytes| {
                let log = OutputLog::new(OutputConfig {
                    memory_bytes: 10,
                    spill: Some(SpillConfig {
                        dir: dir.clone(),
                        max_bytes: 1_000,
                    }),
                });
                log.append(Stream::Stdout, &vec![b'x'; bytes]);
                kept.keep_within(&log, 150);
                log.spill_path().unwrap()
            })
            .inspect(|path| assert!(path.exists(), "the last one stays"))
            .collect();
        let there: Vec<_> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(
            there,
            [false, false, false, true],
            "a large one takes all the room"
        );
        assert_eq!(kept.0.lock().unwrap().len(), 1);
    }
}
