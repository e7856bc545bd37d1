//! A process as the work of a background task.

use std::sync::Arc;
use std::time::Duration;

use dsh_bash::{BashProcess, EndReason, ended_within};
use dsh_output::{LogReader, OutputRead, OutputSource};
use dsh_tasks::Work;

use crate::outcome::{live_detail, outcome, survivors};
use crate::stall::Stall;

/// The kind of every task of this tool.
pub(crate) const KIND: &str = "bash";

/// Follows `process` to its end; a kill of the task ends it, and so does `deadline`. What was output before `told` has
/// been told already. Its silences are told by `stall`, if by anybody.
pub(crate) fn work(
    process: Arc<dyn BashProcess>,
    deadline: Option<Duration>,
    output: LogReader,
    told: u64,
    stall: Option<Arc<Stall>>,
) -> Work {
    let (ending, watched, named, followed) = (
        Arc::clone(&process),
        Arc::clone(&process),
        Arc::clone(&process),
        process,
    );
    let watch = stall.clone();
    let done = async move {
        let end = ended_within(&*followed, deadline);
        outcome(match watch {
            Some(stall) => stall.watch(followed.output(), deadline, end).await,
            None => end.await,
        })
    };
    let cancel = move |_: &_| {
        if let Some(stall) = &stall {
            stall.hush();
        }
        ending.terminate(EndReason::Asked);
        Ok(())
    };
    Work::new(done, cancel)
        .output(Arc::new(Rest { log: output, told }))
        .live_detail(move || live_detail(&watched.state()))
        .survivors(move || survivors(&named.state()))
}

/// What a log holds after `told` bytes, as an output of its own.
struct Rest {
    log: LogReader,
    told: u64,
}

impl OutputSource for Rest {
    fn len(&self) -> u64 {
        self.log.len().saturating_sub(self.told)
    }

    fn read_range(&self, from: u64, to: u64, max: usize) -> OutputRead {
        let read = self
            .log
            .read_range(from.saturating_add(self.told), to.saturating_add(self.told), max);
        OutputRead {
            next: read.next.saturating_sub(self.told),
            ..read
        }
    }

    fn tail(&self, max_lines: usize, max_bytes: usize) -> String {
        if self.is_empty() {
            String::new()
        } else {
            self.log.tail(max_lines, max_bytes)
        }
    }
}
