//! Which stream every byte came from, in bounded space.

use std::ops::Range;

use crate::Stream;

/// Runs kept at most. 24 bytes each.
const MAX_RUNS: usize = 8_192;
/// Runs at the start of the log that always stay exact.
const EXACT_HEAD: usize = 1_024;
/// The latest runs, which are exact when coarsening has just happened and only grow in number after it.
const EXACT_TAIL: usize = 3_072;

/// A contiguous range of the merged stream that came from one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) range: Range<u64>,
    pub(crate) stream: Stream,
}

/// The run-length encoded tags of the merged stream.
///
/// A process that alternates streams with tiny writes would make this list as large as its output. Past
/// [`MAX_RUNS`] neighbouring runs in the middle of the log are merged and take the name of the longer one: bytes
/// and offsets stay exact everywhere, the tags of the first [`EXACT_HEAD`] and the latest [`EXACT_TAIL`] runs too,
/// but a short run far back may be attributed to the other stream.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    spans: Vec<Span>,
}

impl Runs {
    pub(crate) fn push(&mut self, stream: Stream, len: usize) {
        let start = self.spans.last().map_or(0, |last| last.range.end);
        extend(
            &mut self.spans,
            Span {
                range: start..start + len as u64,
                stream,
            },
        );
        if self.spans.len() > MAX_RUNS {
            self.coarsen();
        }
    }

    /// The spans that make up `range`, clipped to it.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Span> + '_ {
        let first = self.spans.partition_point(|span| span.range.end <= range.start);
        self.spans[first..]
            .iter()
            .take_while(move |span| span.range.start < range.end)
            .map(move |span| Span {
                range: span.range.start.max(range.start)..span.range.end.min(range.end),
                stream: span.stream,
            })
    }

    fn coarsen(&mut self) {
        let middle = EXACT_HEAD..self.spans.len() - EXACT_TAIL;
        let mut merged: Vec<Span> = Vec::with_capacity(self.spans.len());
        merged.extend_from_slice(&self.spans[..middle.start]);
        for pair in self.spans[middle.clone()].chunks(2) {
            extend(&mut merged, merge(pair));
        }
        for span in &self.spans[middle.end..] {
            extend(&mut merged, span.clone());
        }
        self.spans = merged;
    }
}

/// Appends a span, joining it to the last one when both come from the same stream.
fn extend(spans: &mut Vec<Span>, next: Span) {
    match spans.last_mut() {
        Some(last) if last.stream == next.stream => last.range.end = next.range.end,
        _ if next.range.is_empty() => {}
        _ => spans.push(next),
    }
}

/// One span for a non-empty slice of neighbours, named after the longest.
fn merge(spans: &[Span]) -> Span {
    let longest = spans.iter().max_by_key(|span| span.range.end - span.range.start);
    Span {
        range: spans.first().map_or(0, |span| span.range.start)
            ..spans.last().map_or(0, |span| span.range.end),
        stream: longest.map_or(Stream::Stdout, |span| span.stream),
    }
}
