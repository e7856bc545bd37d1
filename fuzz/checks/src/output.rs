//! What commands write: the counts are exact, what is shown is text, and what is in the file is what was written.

use std::cell::Cell;
use std::sync::Arc;

use dsh_output::{
    LogReader, OutputConfig, OutputLog, OutputRead, OutputSource, Rendering, SpillConfig, SpillDir, Stream,
    last_lines, render_for_model, visible, visible_line,
};
use tempfile::TempDir;

use crate::input::Input;

/// The most bytes that a reader leaves for the next reply.
const MAX_HELD_BACK: u64 = 256;
/// How an omission note goes on after its number.
const NOTE: &str = " bytes omitted here; ";

/// A header, then steps of a writer and its readers.
pub fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.byte();
    let mut run = Run::new(kind, input.number() % 600, input.number() % 1200);
    while !input.is_empty() {
        run.step(&mut input);
    }
    run.end();
}

/// A log, and beside it every byte that it was given.
struct Run {
    log: OutputLog,
    reader: LogReader,
    written: Vec<(Stream, u8)>,
    /// Where the next reply begins.
    cursor: u64,
    /// What the replies showed since the last one that missed something, and where that began.
    shown: String,
    shown_from: u64,
    memory: u64,
    spills: bool,
    /// Bytes are put into letters, so that each one that is shown can be counted.
    plain: bool,
    streams: Streams,
    rendering: Rendering,
    cap: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Streams {
    One,
    Two,
}

impl Run {
    fn new(kind: u8, memory: usize, cap: usize) -> Self {
        let spills = kind & 1 == 1;
        let spill = spills.then(|| SpillConfig {
            dir: directory(),
            max_bytes: cap as u64,
        });
        let log = OutputLog::new(OutputConfig {
            memory_bytes: memory,
            spill,
        });
        let rendering = if kind & 2 == 0 {
            Rendering::Sections
        } else {
            Rendering::Interleaved
        };
        Self {
            reader: log.reader(rendering),
            log,
            written: Vec::new(),
            cursor: 0,
            shown: String::new(),
            shown_from: 0,
            memory: memory as u64,
            spills,
            plain: kind & 4 == 4,
            streams: if kind & 8 == 8 { Streams::Two } else { Streams::One },
            rendering,
            cap: cap as u64,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0..=3 => self.append(input),
            4 => self.go_on(input.number() % 700),
            5 => self.go_on(usize::MAX),
            6 => {
                let (from, len, max) = (input.number() % 2000, input.number() % 700, input.number() % 700);
                let read = self.reader.read_range(from as u64, (from + len) as u64, max);
                self.reply(from as u64, (from + len) as u64, max, &read);
            }
            _ => {
                let (lines, max) = (input.byte() % 8, input.number() % 500);
                let tail = self.reader.tail(lines.into(), max);
                assert!(tail.len() <= max && tail.lines().count() <= lines.into());
                is_text(&tail);
                assert_eq!(last_lines(&tail, lines.into(), max), tail);
            }
        }
    }

    fn append(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        let stream = match (self.streams, choice & 1) {
            (Streams::One, _) | (Streams::Two, 0) => Stream::Stdout,
            (Streams::Two, _) => Stream::Stderr,
        };
        // Some writes are as long as memory.
        let bytes = input.bytes().repeat(usize::from(choice >> 6) + 1);
        let bytes: Vec<u8> = bytes
            .into_iter()
            .map(|byte| if self.plain { b'a' + byte % 26 } else { byte })
            .collect();
        self.log.append(stream, &bytes);
        self.written.extend(bytes.iter().map(|byte| (stream, *byte)));
        assert_eq!(self.log.len(), self.written.len() as u64);
    }

    /// Reads on from where the last reply ended.
    fn go_on(&mut self, max: usize) {
        let read = self.reader.read_from(self.cursor, max);
        self.reply(self.cursor, u64::MAX, max, &read);
        self.cursor = read.next;
        // Lines stand for themselves, so replies of whole lines are together what one reply is.
        let whole = self.starts_a_line(self.shown_from) && self.starts_a_line(self.cursor);
        if read.omitted > 0 || !whole {
            (self.shown, self.shown_from) = (String::new(), self.cursor);
            return;
        }
        self.shown.push_str(&read.text);
        if self.streams == Streams::One {
            let bytes = self.bytes(self.shown_from, self.cursor);
            assert_eq!(self.shown, render_for_model(&bytes), "whole lines, in parts");
        }
    }

    /// What must hold for any reply.
    fn reply(&self, from: u64, to: u64, max: usize, read: &OutputRead) {
        let len = self.written.len() as u64;
        let (from, to) = (from.min(len), to.min(len).max(from.min(len)));
        is_text(&read.text);
        assert!(read.next <= to && to - read.next <= MAX_HELD_BACK.min(to - from));
        assert!(
            to == len || read.next == to,
            "only what is at the end is held back"
        );
        let taken = (to - from).min(max as u64);
        let missing = self.missing(from, to, max);
        assert_eq!(read.omitted, missing, "left out of {from}..{to}");
        let (notes, said, other) = notes(&read.text);
        let forged = self.written.len() >= NOTE.len() && !self.plain;
        assert!(
            forged || said == read.omitted,
            "{said} said, {} omitted",
            read.omitted
        );
        assert!(read.text.len() as u64 <= 3 * (taken + MAX_HELD_BACK) + 400 * (notes + 1));
        if self.plain {
            assert_eq!(other + read.omitted, to - from, "shown and left out are all");
            assert_eq!(read.next, to);
        }
    }

    /// How many bytes of a range cannot be shown, with those of the characters that are cut.
    fn missing(&self, from: u64, to: u64, max: usize) -> u64 {
        let max = (max as u64).min(to - from);
        let head = if max == to - from { to } else { from + max / 2 };
        let tail = to - (max - max / 2);
        let filed = self.filed();
        let is_shown = |at: u64| (at < head || at >= tail) && self.is_kept(at, filed);
        let (mut at, mut missing, mut in_gap) = (from, 0, false);
        let mut before = self.begun_before(from);
        while at < to {
            if !is_shown(at) {
                // What the gap cuts in two goes with it.
                missing += 1 + if in_gap { 0 } else { before };
                (at, in_gap) = (at + 1, true);
                continue;
            }
            let goes_on = |next: &u64| is_shown(*next) && self.stream(*next) == self.stream(at);
            let end = (at..to).find(|next| !goes_on(next)).unwrap_or(to);
            let mut run = &*self.bytes(at, end);
            if in_gap {
                let rest = run.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80);
                let cut = rest.count();
                missing += cut as u64;
                run = &run[cut..];
            }
            (at, in_gap, before) = (end, run.is_empty(), begun(run));
        }
        missing
    }

    /// How many bytes before a place begin characters, as far as they can still be read.
    fn begun_before(&self, place: u64) -> u64 {
        let from = place.saturating_sub(MAX_HELD_BACK);
        let filed = self.filed();
        let gone = (from..place).rfind(|at| !self.is_kept(*at, filed));
        let from = gone.map_or(from, |gone| gone + 1);
        let of = |stream: Stream| {
            let places = (from..place).filter(|at| self.stream(*at) == stream);
            begun(&places.flat_map(|at| self.bytes(at, at + 1)).collect::<Vec<_>>())
        };
        of(Stream::Stdout) + of(Stream::Stderr)
    }

    /// Up to where the file may be read.
    fn filed(&self) -> u64 {
        self.log.spill_path().map_or(0, |_| self.cap)
    }

    /// Whether a byte can still be read.
    fn is_kept(&self, at: u64, filed: u64) -> bool {
        let (len, head) = (self.written.len() as u64, self.memory / 2);
        let in_memory = len <= self.memory || at < head || at + (self.memory - head) >= len;
        in_memory || at < filed
    }

    fn stream(&self, at: u64) -> Stream {
        self.written[usize::try_from(at).unwrap()].0
    }

    fn end(&mut self) {
        self.log.close();
        let len = self.written.len() as u64;
        self.go_on(usize::MAX);
        assert_eq!(self.cursor, len, "nothing is held back at the end");
        if let Some(path) = self.log.spill_path() {
            let kept = std::fs::read(path).unwrap();
            assert!(kept.len() as u64 <= self.cap);
            assert_eq!(
                kept,
                self.bytes(0, kept.len() as u64),
                "the file is the beginning"
            );
        }
        let everything = len <= self.memory || (self.spills && len <= self.cap);
        let (stdout, stderr) = self.log.stream_texts(u64::MAX, usize::MAX, usize::MAX);
        is_text(&stdout.text);
        is_text(&stderr.text);
        if everything {
            let shown = [(Stream::Stdout, &stdout), (Stream::Stderr, &stderr)];
            for (stream, shown) in shown {
                assert_eq!(shown.text, render_for_model(&self.only(stream)));
                assert!(!shown.truncated);
            }
        }
        let bytes = self.bytes(0, len);
        rendering(&bytes);
        if everything && self.streams == Streams::One && self.rendering == Rendering::Interleaved {
            let whole = self.reader.read_from(0, usize::MAX);
            assert_eq!(whole.text, render_for_model(&bytes));
        }
    }

    fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let range = usize::try_from(from).unwrap()..usize::try_from(to).unwrap();
        self.written[range].iter().map(|(_, byte)| *byte).collect()
    }

    fn only(&self, of: Stream) -> Vec<u8> {
        let written = self.written.iter().filter(|(stream, _)| *stream == of);
        written.map(|(_, byte)| *byte).collect()
    }

    fn starts_a_line(&self, at: u64) -> bool {
        let before = usize::try_from(at).unwrap().checked_sub(1);
        before.is_none_or(|before| self.written[before].1 == b'\n')
    }
}

/// Raw bytes as text, all at once.
fn rendering(bytes: &[u8]) {
    let text = render_for_model(bytes);
    is_text(&text);
    assert!(text.len() <= 3 * bytes.len());
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines(text.as_bytes()), lines(bytes));
    assert_eq!(render_for_model(text.as_bytes()), text, "text is shown as it is");
    let lossy = String::from_utf8_lossy(bytes);
    is_text(&visible(&lossy));
    let line = visible_line(&lossy);
    assert!(!line.contains(char::is_control));
    assert_eq!(visible_line(&line), line, "what is visible stays");
}

/// How many bytes at the end begin a character that more bytes could complete.
fn begun(bytes: &[u8]) -> u64 {
    let could_be_whole = |begun: &[u8]| {
        let error = std::str::from_utf8(begun).err();
        error.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    };
    let sizes = (1..=bytes.len().min(3)).rev();
    let mut begun = sizes.filter(|size| could_be_whole(&bytes[bytes.len() - size..]));
    begun.next().unwrap_or_default() as u64
}

/// Nothing that a terminal obeys but ends of lines and tabs.
fn is_text(text: &str) {
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "in {text:?}");
}

/// How many notes there are, what they add up to, and how many bytes of other text there are, ends of lines and headings
/// not counted.
fn notes(text: &str) -> (u64, u64, u64) {
    let (mut notes, mut sum, mut other) = (0, 0, 0);
    for line in text.lines() {
        let note = line.strip_prefix('[').and_then(|line| line.split_once(NOTE));
        match note.and_then(|(number, _)| number.parse::<u64>().ok()) {
            Some(number) => {
                notes += 1;
                sum += number;
            }
            None if matches!(line, "[stdout]" | "[stderr]") => {}
            None => other += line.len() as u64,
        }
    }
    (notes, sum, other)
}

/// A directory for the files of one log after another.
fn directory() -> Arc<SpillDir> {
    thread_local! {
        static DIRECTORY: Cell<Option<(TempDir, Arc<SpillDir>)>> = const { Cell::new(None) };
    }
    DIRECTORY.with(|cell| {
        let (base, directory) = cell.take().unwrap_or_else(|| {
            let base = tempfile::tempdir().unwrap();
            let directory = SpillDir::create_in(base.path(), u64::MAX).unwrap();
            (base, directory)
        });
        cell.set(Some((base, Arc::clone(&directory))));
        directory
    })
}
