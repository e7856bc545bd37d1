//! The one consuming cursor of a task, and what was leased from it.
//!
//! # Invariants
//!
//! 1. Every offset below `frontier` was delivered, is leased, or lies in a gap.
//! 2. Gaps are sorted, disjoint, not empty, not adjacent, and end before `frontier`: a gap that touches it moves it back.

/// A range of source offsets, end excluded.
pub type Range = std::ops::Range<u64>;

/// Where reading goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    frontier: u64,
    /// Ranges that were leased and came back undelivered.
    gaps: Vec<Range>,
}

/// One stretch that a read may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Where it begins.
    pub start: u64,
    /// Where somebody else's range begins; `None` when nothing behind it was ever leased.
    pub end: Option<u64>,
}

impl Stretch {
    /// Everything, whoever has read it.
    pub const WHOLE: Self = Self { start: 0, end: None };
}

impl Cursor {
    /// What is unread, in the order in which it is to be read: what was abandoned first, then the rest of the source.
    pub fn unread(&self) -> Vec<Stretch> {
        let gaps = self.gaps.iter().map(|gap| Stretch {
            start: gap.start,
            end: Some(gap.end),
        });
        let rest = Stretch {
            start: self.frontier,
            end: None,
        };
        gaps.chain([rest]).collect()
    }

    /// Marks a range as taken. It stays taken unless it is abandoned.
    ///
    /// A range before it may have been abandoned since it was looked up as unread, and have moved the frontier back.
    pub fn lease(&mut self, range: &Range) {
        if range.is_empty() {
            return;
        }
        let end = self.frontier.max(range.end);
        let unread = self.gaps.drain(..).chain(std::iter::once(self.frontier..end));
        self.gaps = unread
            .flat_map(|gap| {
                [
                    gap.start..gap.end.min(range.start),
                    gap.start.max(range.end)..gap.end,
                ]
            })
            .filter(|gap| !gap.is_empty())
            .collect();
        self.frontier = end;
    }

    /// Gives a leased range back: it is read again, before anything newer.
    pub fn abandon(&mut self, range: Range) {
        if range.is_empty() {
            return;
        }
        self.gaps.push(range);
        self.gaps.sort_by_key(|gap| gap.start);
        let mut merged: Vec<Range> = Vec::with_capacity(self.gaps.len());
        for gap in self.gaps.drain(..) {
            match merged.last_mut() {
                Some(last) if gap.start <= last.end => last.end = last.end.max(gap.end),
                _ => merged.push(gap),
            }
        }
        if let Some(last) = merged.pop_if(|last| last.end >= self.frontier) {
            self.frontier = last.start;
        }
        self.gaps = merged;
    }
}

#[cfg(test)]
mod tests;
