//! The commands of a run: each begins with its token, and all that it writes are numbered lines.

use super::dice::Dice;
use super::lines::{LINE, Side, Written, seq};
use crate::Room;

/// A command, and what it will have written.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) token: String,
    pub(super) command: String,
    /// What it writes to each side, in bytes.
    out: u64,
    err: u64,
    /// Made when all of it is written.
    mark: String,
}

/// How much a writer writes, in lines: nothing, what fits everywhere, what has to be spilled.
const SIZES: [u64; 6] = [0, 1, 30, 900, 6_000, 60_000];
/// What has no end of its own.
const ENDLESS: u64 = 900_000_000;

impl Writer {
    /// One that may go on until it is ended.
    pub(super) fn any(token: String, dice: &mut Dice) -> Writer {
        let lines = *dice.pick(&SIZES);
        let quick = |lines| seq(Side::Out, &token, 0..lines);
        let mark = format!("mark.{token}");
        let body = match dice.below(11) {
            0 => format!("{} && : > {mark}; exit {}", quick(lines), dice.below(4)),
            1 => {
                let half = lines / 2;
                let rest = seq(Side::Out, &token, half..lines);
                format!(
                    "{} && sleep 0.{:02} && {rest} && : > {mark}",
                    quick(half),
                    dice.below(40)
                )
            }
            2 => format!("{} && : > {mark}; exec sleep 600", quick(lines)),
            3 => format!(
                "trap '' TERM; {} && : > {mark}; sleep 600; sleep 600",
                quick(lines)
            ),
            4 => format!("{} && : > {mark}; (setsid sleep 600 &)", quick(lines)),
            5 => format!(
                "{} && : > {mark}; (trap '' TERM; setsid sleep 600 & sleep 600) & exit 3",
                quick(lines)
            ),
            6 => format!(
                "for i in 1 2 3 4 5 6 7 8; do (sleep 0.{} &) ; done; {} && : > {mark}",
                dice.below(9),
                quick(lines)
            ),
            7 => format!("{} && : > {mark}; exec >&- 2>&-; sleep 0.2", quick(lines)),
            8 => format!(
                "{} && : > {mark}; kill -{} $$",
                quick(lines),
                dice.pick(&["KILL", "TERM", "HUP", "SEGV"])
            ),
            9 => return Writer::on_both_sides(token, dice),
            _ => return Writer::endless(token),
        };
        Writer::new(token, &body, (lines, 0))
    }

    /// One that ends by itself, and may leave somebody.
    pub(super) fn short(token: String, dice: &mut Dice) -> Writer {
        let lines = *dice.pick(&SIZES[..4]);
        let quick = seq(Side::Out, &token, 0..lines);
        let mark = format!("mark.{token}");
        let body = match dice.below(5) {
            0 => format!("{quick} && : > {mark}"),
            1 => format!("{quick} && sleep 0.{:02} && : > {mark}; exit 2", dice.below(60)),
            2 => format!("{quick} && : > {mark}; sleep 600 > /dev/null 2>&1 &"),
            3 => {
                let later = seq(Side::Out, &token, lines..lines + 50);
                return Writer::new(
                    token.clone(),
                    &format!("{quick} && (sleep 0.3 && {later} && : > {mark}) &"),
                    (lines + 50, 0),
                );
            }
            _ => return Writer::on_both_sides(token, dice),
        };
        Writer::new(token, &body, (lines, 0))
    }

    /// How much of it must have come on one side, as far as it is known.
    pub(super) fn written(&self, room: &Room, side: Side) -> Written {
        let bytes = match side {
            Side::Out => self.out,
            Side::Err => self.err,
        };
        if room.file(&self.mark).exists() {
            Written::All(bytes)
        } else {
            Written::AtMost(bytes)
        }
    }

    fn endless(token: String) -> Writer {
        let all = seq(Side::Out, &token, 0..ENDLESS);
        Writer::new(token, &all, (ENDLESS, 0))
    }

    fn on_both_sides(token: String, dice: &mut Dice) -> Writer {
        let lines = *dice.pick(&SIZES[..4]);
        let (out, err) = (seq(Side::Out, &token, 0..lines), seq(Side::Err, &token, 0..lines));
        let body = match dice.below(2) {
            0 => format!("{out} && {err} && : > mark.{token}"),
            _ => format!("{out} & {{ {err}; }} && wait $! && : > mark.{token}; exit 1"),
        };
        Writer::new(token, &body, (lines, lines))
    }

    fn new(token: String, body: &str, (out, err): (u64, u64)) -> Writer {
        Writer {
            command: format!(": {token}; {body}"),
            mark: format!("mark.{token}"),
            out: out * LINE,
            err: err * LINE,
            token,
        }
    }
}
