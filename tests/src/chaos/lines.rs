//! Output whose every byte says where it belongs, and the account of what became of it.
//!
//! A line has 16 bytes: its stream, the token of who writes, its number. So a piece of output is placed by what is in it, in
//! whatever order pieces are told, and a byte that is told twice, lost, or somebody else's is found.

use std::collections::BTreeMap;
use std::ops::Range;

/// How many bytes a line has.
pub(super) const LINE: u64 = 16;

/// Where something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Out,
    Err,
}

/// Whether somebody has read what was told, for certain: whoever has cancelled a call may find its answer all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Surely,
    Maybe,
}

/// How much was written to one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// So many bytes.
    All(u64),
    /// A beginning of so many bytes.
    AtMost(u64),
}

/// What a file is said to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub(super) path: String,
    /// Where the note says that it is.
    pub(super) there: Range<u64>,
    /// What it is of what was written.
    pub(super) bytes: Range<u64>,
}

/// What was told of the output of one writer.
#[derive(Debug)]
pub(super) struct Account {
    token: String,
    pieces: BTreeMap<Side, Vec<(Range<u64>, Told)>>,
    /// Counted as left out, by a note that stands alone.
    floating: u64,
}

impl Account {
    pub(super) fn new(token: &str) -> Self {
        Self {
            token: token.to_owned(),
            pieces: BTreeMap::new(),
            floating: 0,
        }
    }

    /// Takes a text down, and returns what it says is in a file.
    ///
    /// # Errors
    ///
    /// When there is something in it that this writer has not written.
    pub(super) fn told(&mut self, text: &str, told: Told) -> Result<Vec<Elsewhere>, String> {
        let mut side = Side::Out;
        let mut elsewhere = Vec::new();
        // What comes next on this side, where that is known; and what is placed by what comes after it.
        let (mut next, mut waiting) = (None, Vec::new());
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            if let Some(number) = self.number(side, line) {
                let start = number * LINE;
                elsewhere.extend(self.place_before(side, start, &mut waiting, told)?);
                let soft = lines.peek().is_none_or(|line| is_of_the_tool(line, side));
                next = Some(self.add_line(side, start..start + LINE, told, soft));
            } else if let Some(note) = Note::read(line) {
                waiting.push(Waiting::Note(note));
            } else if line == "[stderr]\n" || line == "[stdout]\n" {
                elsewhere.extend(self.place_after(side, next, &mut waiting, told)?);
                side = if line == "[stderr]\n" {
                    Side::Err
                } else {
                    Side::Out
                };
                next = None;
            } else if !is_of_the_tool(line, side) {
                waiting.push(Waiting::Piece(line.to_owned()));
            }
        }
        elsewhere.extend(self.place_after(side, next, &mut waiting, told)?);
        Ok(elsewhere)
    }

    /// Whether all that was written on a side was told or counted, and nothing twice.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub(super) fn check(&self, side: Side, written: Written) -> Result<(), String> {
        let mut pieces = self.pieces.get(&side).cloned().unwrap_or_default();
        pieces.sort_by_key(|(range, _)| (range.start, range.end));
        let (mut end, mut sure, mut holes) = (0, 0, 0);
        for (range, told) in pieces {
            if told == Told::Surely {
                if range.start < sure {
                    return Err(format!("{} {side:?}: {range:?} was told twice", self.token));
                }
                sure = range.end;
            }
            holes += range.start.saturating_sub(end);
            end = end.max(range.end);
        }
        let most = match written {
            Written::All(all) => {
                holes += all.saturating_sub(end);
                all
            }
            Written::AtMost(most) => most,
        };
        if end > most {
            return Err(format!(
                "{} {side:?}: {end} bytes of {most} were told",
                self.token
            ));
        }
        // A note that stands alone is of the side that has a hole.
        if holes > self.floating {
            return Err(format!(
                "{} {side:?}: {} bytes were neither told nor counted ({written:?}, {end} seen)",
                self.token,
                holes - self.floating
            ));
        }
        Ok(())
    }

    fn add(&mut self, side: Side, range: Range<u64>, told: Told) {
        let pieces = self.pieces.entry(side).or_default();
        match pieces.last_mut() {
            Some((last, same)) if last.end == range.start && *same == told => last.end = range.end,
            _ => pieces.push((range, told)),
        }
    }

    fn number(&self, side: Side, line: &str) -> Option<u64> {
        let number = line.strip_prefix(letter(side))?.strip_prefix(&self.token)?;
        let digits = number.strip_prefix('-')?.strip_suffix('\n')?;
        (digits.len() == 9).then(|| digits.parse().ok())?
    }

    fn fits(&self, side: Side, start: u64, piece: &str) -> bool {
        let expected = (start..).map(|at| self.byte(side, at));
        piece.bytes().zip(expected).all(|(is, should)| is == should)
    }

    fn byte(&self, side: Side, at: u64) -> u8 {
        self.line(side, at / LINE).as_bytes()[(at % LINE) as usize]
    }

    fn line(&self, side: Side, number: u64) -> String {
        numbered(letter(side), &self.token, number)
    }

    /// What this writer has written to its output at these places.
    pub(super) fn content(&self, bytes: Range<u64>) -> Vec<u8> {
        let lines = bytes.start / LINE..bytes.end.div_ceil(LINE);
        let text: String = lines.map(|number| self.line(Side::Out, number)).collect();
        let start = (bytes.start % LINE) as usize;
        text.as_bytes()[start..start + (bytes.end - bytes.start) as usize].to_vec()
    }

    /// A line whose break may be the tool's, since a note or the end comes after it, is told without it for certain.
    fn add_line(&mut self, side: Side, line: Range<u64>, told: Told, soft: bool) -> u64 {
        if soft {
            self.add(side, line.start..line.end - 1, told);
            self.add(side, line.end - 1..line.end, Told::Maybe);
        } else {
            self.add(side, line.clone(), told);
        }
        line.end
    }

    /// Places what came right before `start`, the last of it first.
    fn place_before(
        &mut self,
        side: Side,
        start: u64,
        waiting: &mut Vec<Waiting>,
        told: Told,
    ) -> Result<Vec<Elsewhere>, String> {
        let (mut end, mut elsewhere) = (start, Vec::new());
        while let Some(last) = waiting.pop() {
            let place = |length: u64| Some(end.checked_sub(length)?..end);
            let placed = match &last {
                Waiting::Note(note) => place(note.bytes),
                Waiting::Piece(piece) => [piece.as_str(), piece.trim_end_matches('\n')]
                    .iter()
                    .filter_map(|piece| Some((place(piece.len() as u64)?, piece)))
                    .find(|(place, piece)| self.fits(side, place.start, piece))
                    .map(|(place, _)| place),
            };
            let placed = placed.ok_or_else(|| format!("{} has not written {last:?}", self.token))?;
            end = placed.start;
            self.add(side, placed.clone(), told);
            if let Waiting::Note(note) = last {
                elsewhere.extend(note.elsewhere(placed));
            }
        }
        Ok(elsewhere)
    }

    /// Places what came after everything that has a place: there is nothing behind it.
    fn place_after(
        &mut self,
        side: Side,
        mut next: Option<u64>,
        waiting: &mut Vec<Waiting>,
        told: Told,
    ) -> Result<Vec<Elsewhere>, String> {
        let mut elsewhere = Vec::new();
        for left in waiting.drain(..) {
            match (left, next) {
                (Waiting::Note(note), Some(start)) => {
                    let place = start..start + note.bytes;
                    next = Some(place.end);
                    self.add(side, place.clone(), told);
                    elsewhere.extend(note.elsewhere(place));
                }
                (Waiting::Note(note), None) => self.floating += note.bytes,
                (Waiting::Piece(piece), Some(start))
                    if self.fits(side, start, piece.trim_end_matches('\n')) =>
                {
                    let end = start + piece.trim_end_matches('\n').len() as u64;
                    self.add(side, start..end, told);
                    // The break may be the tool's.
                    next = Some(end);
                    if self.byte(side, end) == b'\n' {
                        self.add(side, end..end + 1, Told::Maybe);
                        next = Some(end + 1);
                    }
                }
                (Waiting::Piece(piece), _) => {
                    return Err(format!("{} has not written {piece:?}", self.token));
                }
            }
        }
        Ok(elsewhere)
    }
}

/// A line that a writer writes to its output.
pub(super) fn line(token: &str, number: u64) -> String {
    numbered(letter(Side::Out), token, number)
}

fn numbered(letter: char, token: &str, number: u64) -> String {
    format!("{letter}{token}-{number:09}\n")
}

/// The words of a command that writes so many numbered lines to a side, from the one with the number `from` on.
pub(super) fn seq(side: Side, token: &str, lines: Range<u64>) -> String {
    let Some(last) = lines.end.checked_sub(1).filter(|last| *last >= lines.start) else {
        return "true".to_owned();
    };
    let redirect = match side {
        Side::Out => "",
        Side::Err => " >&2",
    };
    format!(
        "seq -f '{}{token}-%09.0f' {} {last}{redirect}",
        letter(side),
        lines.start
    )
}

#[derive(Debug)]
enum Waiting {
    Note(Note),
    Piece(String),
}

/// `[N bytes omitted here; …]`
#[derive(Debug)]
struct Note {
    bytes: u64,
    file: Option<(String, Range<u64>)>,
}

impl Note {
    fn read(line: &str) -> Option<Note> {
        let note = line.trim_end_matches('\n').strip_prefix('[')?.strip_suffix(']')?;
        let (bytes, place) = note.split_once(" bytes omitted here; ")?;
        let file = place.strip_prefix("full output: ").and_then(|place| {
            let (path, range) = place.rsplit_once(" bytes ")?;
            let (first, last) = range.split_once('-')?;
            Some((
                path.to_owned(),
                first.parse().ok()?..last.parse::<u64>().ok()? + 1,
            ))
        });
        Some(Note {
            bytes: bytes.parse().ok()?,
            file,
        })
    }

    fn elsewhere(self, bytes: Range<u64>) -> Option<Elsewhere> {
        let (path, there) = self.file?;
        Some(Elsewhere { path, there, bytes })
    }
}

fn letter(side: Side) -> char {
    match side {
        Side::Out => 'o',
        Side::Err => 'e',
    }
}

/// What a tool adds, and what a shell says of its children: no writer writes anything like it.
fn is_of_the_tool(line: &str, side: Side) -> bool {
    let said = ["(no new output)", "(no output)", "spawn failed: ", "["];
    said.iter().any(|said| line.starts_with(said)) || side == Side::Err && line.starts_with("bash: ")
}

#[cfg(test)]
mod tests;
