//! Reads: leased by the one consuming cursor, or free of it.

use std::sync::PoisonError;

use dsh_output::{OutputRead, OutputSource};
use dsh_scope::contain;

use crate::{
    core::{Reading, Standing, Stretch},
    error::ReadError,
    id::TaskId,
};

use super::{Caller, Claim, Observation, TaskRead, TaskRegistry, session};

impl TaskRegistry {
    /// Takes what was not delivered yet, at most `max_bytes` of it (head and tail when there is more), or the final
    /// output. Where ranges that come back undelivered leave no room for what is behind them, the text ends by saying
    /// how much that is.
    ///
    /// The output is leased until the claim ends: a second reader goes on behind it, and what is not delivered is read
    /// again, before anything newer. A read of a task of somebody who works for the caller takes nothing: it shows all of the
    /// output, every time.
    ///
    /// # Errors
    ///
    /// [`ReadError`]; nothing was consumed then.
    pub fn read(&self, id: &TaskId, caller: Caller<'_>, max_bytes: usize) -> Result<TaskRead, ReadError> {
        let ledger = &self.shared.ledger;
        // Looked up to find its gate; what counts is opened when the gate is ours, so that readers take turns.
        let kept = ledger.look(|table| {
            table
                .access(id, session(caller))
                .map(|(record, _)| record.work.clone())
        })?;
        let turn = kept.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let Reading {
            opened,
            unread,
            final_output,
        } = ledger.open(id, session(caller))?;
        let standing = opened.standing;
        let (mut claim, snapshot, kept) = Claim::opened(opened);
        let text = match &kept.hooks.output {
            Some(source) => {
                let taken = contain(|| take(source.as_ref(), &unread, max_bytes));
                let (text, ranges) = taken.map_err(|panicked| ReadError::Source(panicked.to_string()))?;
                for range in ranges.into_iter().filter(|_| standing == Standing::Own) {
                    claim.core().lease(range);
                }
                text
            }
            None => final_output.unwrap_or_default(),
        };
        drop(turn);
        Ok(TaskRead {
            text,
            snapshot: kept.complete(snapshot),
            claim,
        })
    }

    /// Looks at the output from `offset` on, at most `max_bytes` of it. Consumes nothing, counts as told to nobody.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    pub fn observe(
        &self,
        id: &TaskId,
        caller: Caller<'_>,
        offset: u64,
        max_bytes: usize,
    ) -> Result<Observation, ReadError> {
        let (snapshot, kept, final_output) = self.shared.ledger.look(|table| {
            let (record, _) = table.access(id, session(caller))?;
            let output = record.final_output().map(str::to_owned);
            Ok::<_, ReadError>((record.snapshot(), record.work.clone(), output))
        })?;
        let read = match &kept.hooks.output {
            Some(source) => contain(|| source.read_from(offset, max_bytes))
                .map_err(|panicked| ReadError::Source(panicked.to_string()))?,
            None => piece(&final_output.unwrap_or_default(), offset, max_bytes),
        };
        Ok(Observation {
            text: read.text,
            next: read.next,
            omitted: read.omitted,
            snapshot: kept.complete(snapshot),
        })
    }
}

fn take(
    source: &dyn OutputSource,
    unread: &[Stretch],
    max_bytes: usize,
) -> (String, Vec<std::ops::Range<u64>>) {
    let (mut text, mut ranges, mut left) = (String::new(), Vec::new(), max_bytes);
    let mut unread = unread.iter();
    for stretch in unread.by_ref() {
        let end = stretch.end.unwrap_or(u64::MAX);
        let read = source.read_range(stretch.start, end, left);
        let range = stretch.start..read.next.min(end).max(stretch.start);
        left = left.saturating_sub((range.end - range.start) as usize);
        text.push_str(&read.text);
        ranges.push(range);
        if left == 0 {
            break;
        }
    }
    // What was abandoned has used up the room of what came after it. It must not look like the end of the output.
    let behind: u64 = unread.map(|stretch| unread_bytes(source, stretch)).sum();
    if behind > 0 {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("[{behind} more bytes; read again to get them]\n"));
    }
    (text, ranges)
}

fn unread_bytes(source: &dyn OutputSource, stretch: &Stretch) -> u64 {
    let end = stretch.end.unwrap_or_else(|| source.len());
    end.saturating_sub(stretch.start)
}

/// A piece of a final output, from an offset on.
fn piece(output: &str, offset: u64, max_bytes: usize) -> OutputRead {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(output.len());
    let start = boundary(output, start);
    let mut end = start.saturating_add(max_bytes).min(output.len());
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    OutputRead {
        text: output[start..end].to_owned(),
        next: end as u64,
        omitted: 0,
    }
}

/// The first character boundary at or after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
