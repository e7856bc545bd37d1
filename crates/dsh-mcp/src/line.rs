//! Lines of bounded length from a byte stream.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is read, in bytes. A longer one is refused and skipped; the stream goes on.
pub(crate) const MAX_LINE: usize = 4 * 1024 * 1024;

/// Splits a stream into lines and never holds more than one line of at most `limit` bytes.
pub(crate) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    /// The rest of a line that was refused for its length is still to come.
    skipping: bool,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its newline.
    Complete(Vec<u8>),
    /// A line longer than the limit; it is skipped.
    TooLong,
    /// The stream is over. Bytes after the last newline are an unfinished message and are dropped.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            limit,
            skipping: false,
        }
    }

    /// The next line.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what was read of a line stays here.
    pub(crate) async fn next(&mut self) -> Line {
        loop {
            let available = match self.input.fill_buf().await {
                Ok([]) => return Line::End,
                Ok(available) => available,
                Err(error) => {
                    tracing::warn!("mcp: reading failed, which ends the connection: {error}");
                    return Line::End;
                }
            };
            let newline = available.iter().position(|byte| *byte == b'\n');
            let body = newline.unwrap_or(available.len());
            let consumed = newline.map_or(body, |at| at + 1);
            let fits = self.line.len() + body <= self.limit;
            if fits && !self.skipping {
                self.line.extend_from_slice(&available[..body]);
            }
            self.input.consume(consumed);
            if let Some(line) = self.step(fits, newline.is_some()) {
                return line;
            }
        }
    }

    /// What the bytes just consumed amount to; `None` = read on.
    fn step(&mut self, fits: bool, ended: bool) -> Option<Line> {
        if self.skipping {
            self.skipping = !ended;
            return None;
        }
        if !fits {
            self.line = Vec::new();
            self.skipping = !ended;
            return Some(Line::TooLong);
        }
        ended.then(|| Line::Complete(std::mem::take(&mut self.line)))
    }
}

#[cfg(test)]
mod tests;
