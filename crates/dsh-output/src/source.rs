//! What readers of a task's output get.

use crate::reply::{Request, replies, reply};
use crate::{OutputLog, Stream};

/// Where a task's output can be read, again and again, without consuming it: cursors belong to the readers.
///
/// Offsets count the raw bytes of the source and never depend on how they are rendered.
pub trait OutputSource: Send + Sync + 'static {
    /// The end right now, in source bytes.
    fn len(&self) -> u64;

    /// Renders the source bytes from `from` up to `to`, or up to the end right now if that comes first.
    ///
    /// At most `max` source bytes are taken. If the range holds more, the reply has the head and the tail of the
    /// range with an omission note between them, and the skipped bytes count as read: one call always moves a cursor
    /// to the end of the range.
    fn read_range(&self, from: u64, to: u64, max: usize) -> OutputRead;

    /// The last lines, rendered, for a notice: at most `max_lines` and `max_bytes`, without a final newline. Empty
    /// if there was no output.
    fn tail(&self, max_lines: usize, max_bytes: usize) -> String;

    /// Whether there is no output yet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Renders everything from `offset` on; see [`read_range`](Self::read_range).
    fn read_from(&self, offset: u64, max: usize) -> OutputRead {
        self.read_range(offset, u64::MAX, max)
    }
}

/// One reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputRead {
    /// Rendered text with omission notes where bytes are missing. At most three bytes for each byte taken, plus the
    /// notes and the section headers.
    pub text: String,
    /// The offset to go on from. It is the end of the range, except when the live end of the log is in the middle
    /// of a character or escape sequence: that beginning is left for the next call.
    pub next: u64,
    /// Source bytes of the range that the text does not show; the sum of the notes. A character counts where it ends: if
    /// the reply begins with a gap, its part that lies before the range is among them.
    pub omitted: u64,
}

/// How the two streams share one text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rendering {
    /// The text of stdout, then `[stderr]` on a line and the text of stderr. A reply with omitted bytes does that
    /// before and after every note; where the text before a note ended in stderr, that of stdout after it is under
    /// `[stdout]`.
    #[default]
    Sections,
    /// Both streams in the order of arrival, unmarked, as on a terminal.
    Interleaved,
}

/// One stream of a log as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamText {
    /// Rendered text, with an omission note where bytes are missing.
    pub text: String,
    /// Whether bytes are missing.
    pub truncated: bool,
}

/// An [`OutputSource`] over a log.
///
/// Reading never waits for the disk while the log is locked, so it does not hold up whoever appends. What is no longer
/// in memory is read from the spill file on the caller's thread: a short blocking read, as a rule from the page cache.
#[derive(Clone, Debug)]
pub struct LogReader {
    log: OutputLog,
    rendering: Rendering,
}

impl LogReader {
    pub(crate) fn new(log: OutputLog, rendering: Rendering) -> Self {
        Self { log, rendering }
    }
}

impl OutputSource for LogReader {
    fn len(&self) -> u64 {
        self.log.len()
    }

    fn read_range(&self, from: u64, to: u64, max: usize) -> OutputRead {
        let request = Request {
            range: from..to,
            only: None,
            max,
            rendering: self.rendering,
        };
        let (view, end) = reply(&self.log, &request);
        OutputRead {
            text: view.text,
            next: end - view.held_back,
            omitted: view.omitted,
        }
    }

    fn tail(&self, max_lines: usize, max_bytes: usize) -> String {
        let len = self.log.len();
        // Escape sequences and progress frames take room without being seen.
        let window = max_bytes.saturating_mul(8).max(4_096);
        let from = len.saturating_sub(window as u64);
        let request = Request {
            range: from..len,
            only: None,
            max: window,
            rendering: Rendering::Interleaved,
        };
        let (view, _) = reply(&self.log, &request);
        let text = &view.text[view.last_piece..];
        last_lines(text, max_lines, max_bytes).to_owned()
    }
}

impl OutputLog {
    /// Standard output and standard error apart, as far as they lie below offset `to` of the log: each of them whole, or
    /// its head and tail within so many source bytes of that stream. Both speak of the same moment: together they hold
    /// every byte once.
    pub fn stream_texts(&self, to: u64, max_stdout: usize, max_stderr: usize) -> (StreamText, StreamText) {
        let request = |stream, max| Request {
            range: 0..to,
            only: Some(stream),
            max,
            rendering: Rendering::Interleaved,
        };
        let requests = [
            request(Stream::Stdout, max_stdout),
            request(Stream::Stderr, max_stderr),
        ];
        let texts = replies(self, requests.each_ref()).map(|(view, _)| StreamText {
            text: view.text,
            truncated: view.omitted > 0,
        });
        texts.into()
    }
}

/// The end of `text`, without what is blank after it: at most `max_lines` whole lines in at most `max_bytes`, or the end
/// of the last line if it alone is longer than that.
pub fn last_lines(text: &str, max_lines: usize, max_bytes: usize) -> &str {
    let text = text.trim_end();
    let mut start = match max_lines.checked_sub(1) {
        Some(before) => text
            .rmatch_indices('\n')
            .nth(before)
            .map_or(0, |(newline, _)| newline + 1),
        None => text.len(),
    };
    while text.len() - start > max_bytes {
        start = match text[start..].find('\n') {
            Some(newline) => start + newline + 1,
            None => char_boundary_from(text, text.len() - max_bytes),
        };
    }
    &text[start..]
}

/// The first character boundary at or after `at`.
fn char_boundary_from(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
