//! What must not be there after a program.

use std::time::{Duration, Instant};

use super::{Faults, facts};
use crate::Room;

/// How long the end of a program may take: the grace, ten seconds for survivors, and a busy machine.
pub(super) const DISPOSAL: Duration = Duration::from_secs(30);
/// How long what a killed program leaves may take to end.
pub(super) const LEFT: Duration = Duration::from_secs(15);
/// A guard may still be about to end when its supervisor already has.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(2);

/// Processes that are there after so long.
pub(super) async fn processes(room: &Room, limit: Duration) -> Faults {
    let began = Instant::now();
    loop {
        let left = room.processes();
        if left.is_empty() {
            return Vec::new();
        }
        if began.elapsed() > limit {
            let left: Vec<String> = left.into_iter().map(facts::describe).collect();
            return vec![format!("{limit:?} after the end these live: {left:#?}")];
        }
        // sleep: the fact is polled.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Temporary files, and the cgroups of a program.
pub(super) fn things(room: &Room, program: u32) -> Faults {
    let (files, cgroups) = (room.temporary_files(), facts::cgroups(program));
    let mut faults = Vec::new();
    if !files.is_empty() {
        faults.push(format!("left on disk: {files:?}"));
    }
    if !cgroups.is_empty() {
        faults.push(format!("cgroups are left: {cgroups:?}"));
    }
    faults
}
