//! One line of the table: ours, the floor beside it, and what is aimed at.

use serde::{Deserialize, Serialize};

use crate::figure::{Spread, Unit};

/// How much worse than its target a row may be before a check fails: the targets are for a machine at rest, and the
/// ratios of one run still differ with what else the machine does.
const SLACK: f64 = 2.0;

/// One line of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) ours: Spread,
    pub(crate) beside: Option<Beside>,
    pub(crate) target: Target,
}

/// What was measured in turns with ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// What it is.
    pub(crate) name: String,
    pub(crate) floor: Spread,
    /// Ours to it, each round by itself.
    pub(crate) ratio: Spread,
}

/// What is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Target {
    /// Ours is at most so many times the floor.
    RatioAtMost(f64),
    /// Ours is at least so many times the floor.
    RatioAtLeast(f64),
    /// Ours is at most this, in the row's unit.
    AtMost(f64),
    /// Nothing: the figure is for the reader.
    Nothing,
}

/// Whether the target was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// There is no target.
    None,
}

impl Row {
    /// A row without a floor. `None` without samples.
    pub(crate) fn new(what: impl Into<String>, unit: Unit, ours: Vec<f64>) -> Option<Row> {
        Some(Row {
            what: what.into(),
            unit,
            ours: Spread::of(ours)?,
            beside: None,
            target: Target::Nothing,
        })
    }

    /// A row with the samples of its floor, from the same rounds. `None` without samples.
    pub(crate) fn beside(
        what: impl Into<String>,
        unit: Unit,
        ours: &[f64],
        name: impl Into<String>,
        floor: &[f64],
    ) -> Option<Row> {
        let ratio = ours.iter().zip(floor).map(|(ours, floor)| ours / floor);
        let beside = Beside {
            name: name.into(),
            floor: Spread::of(floor.to_vec())?,
            ratio: Spread::of(ratio.collect())?,
        };
        let row = Row::new(what, unit, ours.to_vec())?;
        Some(Row {
            beside: Some(beside),
            ..row
        })
    }

    /// The same row with something to aim at.
    pub(crate) fn aims_at(self, target: Target) -> Row {
        Row { target, ..self }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.times_the_target() {
            None => Verdict::None,
            Some(times) if times <= 1.0 => Verdict::Met,
            Some(_) => Verdict::Missed,
        }
    }

    /// Whether it is so far from its target that a busy machine is no excuse.
    pub(crate) fn is_far_off(&self) -> bool {
        self.times_the_target().is_some_and(|times| times > SLACK)
    }

    /// How far it is, at the median: at most 1 is met, 2 is twice as bad.
    fn times_the_target(&self) -> Option<f64> {
        let ratio = self.beside.as_ref().map(|beside| beside.ratio.median);
        match self.target {
            Target::RatioAtMost(most) => Some(ratio? / most),
            Target::RatioAtLeast(least) => Some(least / ratio?),
            Target::AtMost(most) => Some(self.ours.median / most),
            Target::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, floor: f64, target: Target) -> Row {
        Row::beside("a row", Unit::Time, &[ours], "a floor", &[floor])
            .expect("it has a sample")
            .aims_at(target)
    }

    #[test]
    fn the_ratio_is_that_of_the_rounds() {
        let row = Row::beside("a row", Unit::Time, &[1.0, 4.0, 9.0], "a floor", &[1.0, 2.0, 3.0]);
        let ratio = row.and_then(|row| Some(row.beside?.ratio.median));
        assert_eq!(ratio, Some(2.0));
    }

    #[test]
    fn a_ratio_above_its_target_is_missed_and_at_twice_of_it_far_off() {
        let at_most = Target::RatioAtMost(1.5);
        assert_eq!(row(3.0, 2.0, at_most).verdict(), Verdict::Met);
        assert_eq!(row(4.0, 2.0, at_most).verdict(), Verdict::Missed);
        assert!(!row(6.0, 2.0, at_most).is_far_off());
        assert!(row(6.1, 2.0, at_most).is_far_off());
    }

    #[test]
    fn a_throughput_below_its_target_is_missed_and_at_half_of_it_far_off() {
        let at_least = Target::RatioAtLeast(0.8);
        assert_eq!(row(8.0, 10.0, at_least).verdict(), Verdict::Met);
        assert_eq!(row(7.0, 10.0, at_least).verdict(), Verdict::Missed);
        assert!(!row(4.0, 10.0, at_least).is_far_off());
        assert!(row(3.9, 10.0, at_least).is_far_off());
    }

    #[test]
    fn without_a_target_nothing_is_missed() {
        let row = row(1e9, 1.0, Target::Nothing);
        assert_eq!(row.verdict(), Verdict::None);
        assert!(!row.is_far_off());
    }
}
