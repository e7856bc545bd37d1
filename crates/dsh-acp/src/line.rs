//! Lines of bounded length, as the protocol has them.

use std::io;

use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};

/// The longest line that is read, in bytes. A longer one is refused and skipped; the stream goes on.
pub(crate) const MAX_LINE: usize = 4 * 1024 * 1024;

/// Splits a stream into lines and never holds more than one.
pub(crate) struct LineDecoder(LinesCodec);

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its end.
    Complete(String),
    /// A line over the limit; it is skipped.
    TooLong,
    /// A line that is no UTF-8.
    NotText,
}

impl LineDecoder {
    pub(crate) fn new(limit: usize) -> Self {
        Self(LinesCodec::new_with_max_length(limit))
    }
}

impl Decoder for LineDecoder {
    type Item = Line;
    type Error = io::Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        match self.0.decode(bytes) {
            Ok(line) => Ok(line.map(Line::Complete)),
            // A decoder that fails ends the stream; one bad line must not.
            Err(LinesCodecError::MaxLineLengthExceeded) => Ok(Some(Line::TooLong)),
            Err(LinesCodecError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                Ok(Some(Line::NotText))
            }
            Err(LinesCodecError::Io(error)) => Err(error),
        }
    }

    /// Bytes after the last line end are an unfinished message and are dropped.
    fn decode_eof(&mut self, bytes: &mut BytesMut) -> io::Result<Option<Line>> {
        let line = self.decode(bytes)?;
        if line.is_none() {
            bytes.clear();
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests;
