//! The bytes in memory: the head and the tail of a stream, byte-exact.

use std::collections::VecDeque;
use std::ops::Range;

/// Head and tail of everything appended so far. Holds the whole stream while that fits the budget, and exactly
/// the budget afterwards.
pub(crate) struct Window {
    head: Vec<u8>,
    head_budget: usize,
    tail: VecDeque<u8>,
    tail_budget: usize,
    len: u64,
}

impl Window {
    pub(crate) fn new(budget: usize) -> Self {
        let head_budget = budget / 2;
        Self {
            head: Vec::new(),
            head_budget,
            tail: VecDeque::new(),
            tail_budget: budget - head_budget,
            len: 0,
        }
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_budget - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_budget)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_budget);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Counts bytes that are not there. The head is complete then, and the tail begins behind them.
    pub(crate) fn skip(&mut self, count: u64) {
        if count > 0 {
            self.len += count;
            self.head_budget = self.head.len();
            self.tail.clear();
        }
    }

    /// How much is kept of what is yet to come, if that is the tail alone.
    pub(crate) fn keeps_last(&self) -> Option<usize> {
        (self.head.len() == self.head_budget).then_some(self.tail_budget)
    }

    /// Gives back the room for more: a log that has ended may be kept for long.
    pub(crate) fn shrink(&mut self) {
        self.head.shrink_to_fit();
        self.tail.shrink_to_fit();
    }

    /// Bytes ever appended.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether `more` bytes can be appended without losing one.
    pub(crate) fn fits(&self, more: u64) -> bool {
        self.len.saturating_add(more) <= (self.head_budget + self.tail_budget) as u64
    }

    /// The part of `range` that lies in memory as up to two pieces, in order, each with its start offset.
    pub(crate) fn read(&self, range: &Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        let head = overlap(range, &(0..self.head.len() as u64));
        if !head.is_empty() {
            found.push((
                head.start,
                self.head[to_index(head.start)..to_index(head.end)].to_vec(),
            ));
        }
        let tail_start = self.len - self.tail.len() as u64;
        let tail = overlap(range, &(tail_start..self.len));
        if !tail.is_empty() {
            let within = to_index(tail.start - tail_start)..to_index(tail.end - tail_start);
            found.push((tail.start, self.tail.range(within).copied().collect()));
        }
        found
    }
}

/// The common part of two ranges; empty when there is none.
pub(crate) fn overlap(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

/// An offset within something that lies in memory.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the offset is below the length of a buffer in memory"
)]
pub(crate) fn to_index(offset: u64) -> usize {
    offset as usize
}

#[cfg(test)]
mod tests;
