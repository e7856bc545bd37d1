//! A final-output producer: the worked example of `docs/producer-contract.md`. A test compares the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dsh_tasks::{BoxError, Outcome, StartSpec, Work};

/// The work itself. It knows nothing of tasks.
pub(crate) fn checksum(data: &[u8], stop: &AtomicBool) -> Option<u32> {
    let mut sum = 0_u32;
    for piece in data.chunks(4096) {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        sum = piece
            .iter()
            .fold(sum, |sum, &byte| sum.rotate_left(5) ^ u32::from(byte));
    }
    Some(sum)
}

/// The producer: it starts the work and hands it over.
pub(crate) fn checksum_task(name: &str, data: Vec<u8>) -> StartSpec {
    StartSpec::new(
        "checksum",
        format!("checksum of {name}"),
        move || -> Result<Work, BoxError> {
            if data.is_empty() {
                // Refused: there will be no task.
                return Err("nothing to sum up".into());
            }
            let stop = Arc::new(AtomicBool::new(false));
            let (told, seen) = (stop.clone(), stop.clone());
            let worker = tokio::task::spawn_blocking(move || checksum(&data, &seen));
            let done = async move {
                match worker.await {
                    Ok(Some(sum)) => Outcome::completed().output(format!("{sum:08x}\n")),
                    Ok(None) => Outcome::killed(),
                    Err(lost) => Outcome::failed().detail(lost.to_string()),
                }
            };
            let cancel = move |_: &_| {
                told.store(true, Ordering::Relaxed);
                Ok(())
            };
            Ok(Work::new(done, cancel))
        },
    )
}
