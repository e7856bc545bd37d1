//! Lines of bounded length from a byte stream.

use rmcp::model::RequestId;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use skim::Skim;

mod skim;

/// The longest line that is read, in bytes. A longer one is refused and skipped; the stream goes on.
pub(crate) const MAX_LINE: usize = 4 * 1024 * 1024;

/// Splits a stream into lines and never holds more than one line of at most `limit` bytes.
pub(crate) struct LineReader<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
    /// Looks through a line that is too long.
    skipping: Option<Skim>,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its newline.
    Complete(Vec<u8>),
    /// A line longer than the limit; it was skipped, all but the id of the request that it was.
    TooLong(Option<RequestId>),
    /// The stream is over. Bytes after the last newline are an unfinished message and are dropped.
    End,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            limit,
            skipping: None,
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
            self.take(body);
            self.input.consume(consumed);
            if newline.is_some() {
                return match self.skipping.take() {
                    Some(skim) => Line::TooLong(skim.id()),
                    None => Line::Complete(std::mem::take(&mut self.line)),
                };
            }
        }
    }

    /// Goes on with a line: these many bytes of what is there belong to it.
    fn take(&mut self, body: usize) {
        let piece = &self.input.buffer()[..body];
        if self.skipping.is_none() && self.line.len() + body > self.limit {
            let mut skim = Skim::default();
            skim.read(&std::mem::take(&mut self.line));
            self.skipping = Some(skim);
        }
        match &mut self.skipping {
            Some(skim) => skim.read(piece),
            None => self.line.extend_from_slice(piece),
        }
    }
}

#[cfg(test)]
mod tests;
