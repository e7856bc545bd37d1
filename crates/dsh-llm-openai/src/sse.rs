//! Server-sent events, read in whatever pieces they come.

use hyper::body::Bytes;

/// The most bytes of one event, its unfinished line included. A provider may send a whole tool call as one event.
pub(crate) const MAX_EVENT: usize = 4 << 20;

/// Takes bytes, gives the data of events. Memory is bounded by [`MAX_EVENT`] and by what was pushed last.
///
/// Lines end with LF, CR or CRLF; comments and all fields but `data` are skipped; an event that its blank line does
/// not end is none.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    input: Bytes,
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    position: Position,
}

/// What the next byte follows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Nothing: a byte-order mark may come.
    #[default]
    Start,
    /// Something within the first line.
    FirstLine,
    /// A carriage return: a line feed belongs to it.
    CarriageReturn,
    /// Something else.
    Other,
}

/// An event is longer than [`MAX_EVENT`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Decoder {
    /// Adds input. To be called when [`next`](Self::next) has nothing more to give.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        debug_assert!(self.input.is_empty());
        self.input = bytes;
    }

    /// The data of the next event; `None` when more input is needed.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        while !self.input.is_empty() {
            if self.position == Position::CarriageReturn {
                self.position = Position::Other;
                if self.input.starts_with(b"\n") {
                    let _ = self.input.split_to(1);
                    continue;
                }
            }
            let end = self.input.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let piece = self.input.split_to(end.unwrap_or(self.input.len()));
            let so_far = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if so_far + piece.len() > MAX_EVENT {
                return Err(TooLong);
            }
            self.line.extend_from_slice(&piece);
            if self.position == Position::Start {
                self.position = Position::FirstLine;
            }
            if end.is_none() {
                break;
            }
            let first = self.position == Position::FirstLine;
            let ended_by = self.input.split_to(1);
            self.position = match &*ended_by {
                b"\r" => Position::CarriageReturn,
                _ => Position::Other,
            };
            if let Some(data) = self.end_line(first) {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    fn end_line(&mut self, first: bool) -> Option<Vec<u8>> {
        let mut line = std::mem::take(&mut self.line);
        if first && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.data.take();
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        if name == b"data" {
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        line.clear();
        self.line = line;
        None
    }
}

#[cfg(test)]
mod tests;
