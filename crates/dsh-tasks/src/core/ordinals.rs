//! A set of numbers that is small when they come in runs.

use std::collections::BTreeMap;

/// Runs by their start, each with its end (included). Runs do not touch.
#[derive(Debug, Default)]
pub(super) struct Ordinals(BTreeMap<u64, u64>);

impl Ordinals {
    pub(super) fn insert(&mut self, ordinal: u64) {
        if self.contains(ordinal) {
            return;
        }
        let end = self.0.remove(&(ordinal + 1)).unwrap_or(ordinal);
        match self.0.range_mut(..ordinal).next_back() {
            Some((_, last)) if *last + 1 == ordinal => *last = end,
            _ => {
                self.0.insert(ordinal, end);
            }
        }
    }

    pub(super) fn contains(&self, ordinal: u64) -> bool {
        let run = self.0.range(..=ordinal).next_back();
        run.is_some_and(|(_, &end)| ordinal <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_grow_at_both_ends_and_merge() {
        let mut set = Ordinals::default();
        for ordinal in [5, 3, 4, 9, 1, 4] {
            set.insert(ordinal);
        }
        assert_eq!(set.0.into_iter().collect::<Vec<_>>(), [(1, 1), (3, 5), (9, 9)]);
    }

    #[test]
    fn only_what_was_inserted_is_in_it() {
        let mut set = Ordinals::default();
        for ordinal in [1, 2, 4] {
            set.insert(ordinal);
        }
        let members: Vec<u64> = (0..6).filter(|&n| set.contains(n)).collect();
        assert_eq!(members, [1, 2, 4]);
    }
}
