//! Which stream every byte came from, in bounded space.

use std::ops::Range;

use crate::Stream;

/// Runs kept at most, at eight bytes each.
const MAX_RUNS: usize = 8_192;
/// Runs at the start of the log that always stay exact.
const EXACT_HEAD: usize = 1_024;
/// Runs at the end of the log that stay exact at least.
const EXACT_TAIL: usize = 3_072;

/// A contiguous range of the merged stream that came from one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) range: Range<u64>,
    pub(crate) stream: Stream,
}

/// The run-length encoded tags of the merged stream.
///
/// A process that alternates streams with tiny writes would make this list as large as its output. At
/// [`MAX_RUNS`] neighbouring runs in the middle of the log are merged in pairs and take the name of the longer one:
/// bytes and offsets stay exact everywhere, and so do the tags of the first [`EXACT_HEAD`] and the latest
/// [`EXACT_TAIL`] runs, but a short run in between may be attributed to the other stream.
#[derive(Default)]
pub(crate) struct Runs {
    runs: Vec<Run>,
}

/// Where a run ends, and its stream in the lowest bit. It begins where the one before it ends.
#[derive(Clone, Copy, Debug)]
struct Run(u64);

impl Run {
    fn new(end: u64, stream: Stream) -> Self {
        Self(end << 1 | u64::from(stream == Stream::Stderr))
    }

    fn end(self) -> u64 {
        self.0 >> 1
    }

    fn stream(self) -> Stream {
        if self.0 & 1 == 0 {
            Stream::Stdout
        } else {
            Stream::Stderr
        }
    }
}

impl Runs {
    pub(crate) fn push(&mut self, stream: Stream, len: u64) {
        let end = end_of(&self.runs) + len;
        extend(&mut self.runs, Run::new(end, stream));
        if self.runs.len() == MAX_RUNS {
            self.coarsen();
        }
    }

    /// The spans that make up `range`, clipped to it.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Span> + '_ {
        let first = self.runs.partition_point(|run| run.end() <= range.start);
        let mut at = range.start;
        self.runs[first..].iter().map_while(move |run| {
            let start = at;
            at = run.end().min(range.end);
            (start < at).then(|| Span {
                range: start..at,
                stream: run.stream(),
            })
        })
    }

    fn coarsen(&mut self) {
        let exact_tail = self.runs.len() - EXACT_TAIL;
        let mut merged = Vec::with_capacity(MAX_RUNS);
        merged.extend_from_slice(&self.runs[..EXACT_HEAD]);
        for pair in self.runs[EXACT_HEAD..exact_tail].chunks_exact(2) {
            let lengths = (pair[0].end() - end_of(&merged), pair[1].end() - pair[0].end());
            let stream = if lengths.0 >= lengths.1 {
                pair[0].stream()
            } else {
                pair[1].stream()
            };
            extend(&mut merged, Run::new(pair[1].end(), stream));
        }
        for &run in &self.runs[exact_tail..] {
            extend(&mut merged, run);
        }
        self.runs = merged;
    }
}

fn end_of(runs: &[Run]) -> u64 {
    runs.last().map_or(0, |run| run.end())
}

/// Appends a run, joining it to the last one when both come from the same stream.
fn extend(runs: &mut Vec<Run>, next: Run) {
    match runs.last_mut() {
        Some(last) if last.stream() == next.stream() => *last = next,
        _ => runs.push(next),
    }
}

// The middle is merged in whole pairs.
const _: () = assert!((MAX_RUNS - EXACT_HEAD - EXACT_TAIL).is_multiple_of(2));

#[cfg(test)]
mod tests;
