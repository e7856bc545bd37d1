//! What a life of `dsh run` is made up of, before it is lived.

use std::time::Duration;

use rustix::process::Signal;

use super::script::{Author, Play, Script};
use crate::chaos::dice::Dice;
use crate::chaos::weather::Weather;

/// One program.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) fate: Fate,
    /// When its fate comes, and the weather ends.
    pub(super) after: Duration,
    /// When the same signal comes again.
    pub(super) again: Option<Duration>,
    pub(super) weather: Weather,
    pub(super) linger: u64,
    pub(super) stderr: Stderr,
    pub(super) script: Script,
    /// For what befalls it.
    pub(super) dice: Dice,
}

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// When it has nothing more to do.
    Itself,
    /// By a signal that it takes for a request.
    Asked(Signal),
    /// By a signal that it cannot take.
    Killed,
    /// When so many bytes of what it says were read, nobody reads any more.
    Unread(usize),
}

/// Where its complaints go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stderr {
    Logged,
    /// To nobody: the other end is closed.
    Closed,
}

impl Generation {
    /// One that meets accidents.
    pub(super) fn any(author: &mut Author, dice: &mut Dice) -> Generation {
        let fate = Fate::any(dice);
        let play = match fate {
            // What hangs would never end.
            Fate::Itself | Fate::Unread(_) => Play::Plain,
            Fate::Asked(_) | Fate::Killed => Play::Anything,
        };
        let turns = 2 + dice.below(9);
        Generation {
            fate,
            after: dice.millis(2_000),
            again: dice.percent(40).then(|| dice.millis(600)),
            weather: Weather::any(dice),
            linger: dice.below(3) as u64,
            stderr: match dice.percent(15) {
                true => Stderr::Closed,
                false => Stderr::Logged,
            },
            script: author.random(dice, play, turns),
            dice: dice.fork(),
        }
    }

    /// One that settles everything in peace.
    pub(super) fn settling(author: &mut Author, dice: &mut Dice, known: usize) -> Generation {
        Generation {
            fate: Fate::Itself,
            after: Duration::ZERO,
            again: None,
            weather: Weather::Fair,
            linger: 60,
            stderr: Stderr::Logged,
            script: author.settling(dice, known),
            dice: dice.fork(),
        }
    }

    /// It in a few words.
    pub(super) fn about(&self) -> String {
        let Generation {
            fate,
            after,
            again,
            weather,
            linger,
            stderr,
            script,
            dice: _,
        } = self;
        let turns = script.turns.len();
        format!(
            "{fate:?} after {after:?}, again {again:?}, {weather:?}, lingers {linger} s, {stderr:?}, {turns} turns"
        )
    }
}

impl Fate {
    fn any(dice: &mut Dice) -> Fate {
        let bytes = dice.below(8_000);
        let all = [
            Fate::Itself,
            Fate::Asked(Signal::INT),
            Fate::Asked(Signal::TERM),
            Fate::Asked(Signal::HUP),
            Fate::Killed,
            Fate::Killed,
            Fate::Unread(bytes),
        ];
        *dice.pick(&all)
    }
}
