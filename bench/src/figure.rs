//! Figures: the median of samples with its range, and how people read it.

use serde::{Deserialize, Serialize};

/// The median of some samples, and the smallest and the largest of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    /// Seconds.
    Time,
    /// Bytes.
    Memory,
    /// Bytes in a second.
    Rate,
    /// Commands in a second.
    Commands,
    /// How many times as much.
    Times,
}

impl Spread {
    /// Of no samples at all there is none.
    pub(crate) fn of(mut samples: Vec<f64>) -> Option<Spread> {
        samples.sort_unstable_by(f64::total_cmp);
        Some(Spread {
            median: *samples.get(samples.len() / 2)?,
            min: *samples.first()?,
            max: *samples.last()?,
        })
    }

    /// As text, each number by `shown`.
    pub(crate) fn shown(&self, shown: impl Fn(f64) -> String) -> String {
        let Spread { median, min, max } = *self;
        format!("{} [{}..{}]", shown(median), shown(min), shown(max))
    }
}

impl Unit {
    /// A number of this unit, with three digits that count.
    pub(crate) fn shown(self, value: f64) -> String {
        match self {
            Unit::Time => scaled(value * 1e9, 1e3, &["ns", "µs", "ms", "s"]),
            Unit::Memory => scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB"]),
            Unit::Rate => scaled(value, 1e3, &["B/s", "kB/s", "MB/s", "GB/s"]),
            Unit::Commands => scaled(value, 1e6, &["/s"]),
            Unit::Times => scaled(value, 1e6, &["×"]),
        }
    }
}

fn scaled(mut value: f64, step: f64, names: &[&str]) -> String {
    let mut names = names.iter();
    let mut name = names.next().copied().unwrap_or_default();
    for next in names {
        if value < step {
            break;
        }
        value /= step;
        name = next;
    }
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_both_ends() {
        let spread = Spread::of(vec![5.0, 1.0, 3.0]);
        let expected = Spread {
            median: 3.0,
            min: 1.0,
            max: 5.0,
        };
        assert_eq!(spread, Some(expected));
        assert_eq!(Spread::of(Vec::new()), None);
    }

    #[test]
    fn numbers_have_the_unit_that_suits_them() {
        assert_eq!(Unit::Time.shown(0.000_012_34), "12.3 µs");
        assert_eq!(Unit::Time.shown(12.0), "12.0 s");
        assert_eq!(Unit::Memory.shown(1536.0), "1.50 KiB");
        assert_eq!(Unit::Rate.shown(5.1e9), "5.10 GB/s");
        assert_eq!(Unit::Commands.shown(643.0), "643 /s");
    }
}
