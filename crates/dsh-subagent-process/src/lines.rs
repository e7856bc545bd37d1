//! Lines over a pipe, in both directions.

use std::io;

use dsh_subprocess::StdinPipe;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// The longest line that is taken from a product, its end included.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Lines that a product writes. Its end of line is a newline; what stands behind the last one is a line, too.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
}

/// Why there is no next line. Nothing can be read after it.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It cannot be read.
    #[error("cannot read from the product: {0}")]
    Read(#[from] io::Error),
    /// It is longer than [`MAX_LINE_BYTES`].
    #[error("the product wrote a line of more than {MAX_LINE_BYTES} bytes")]
    TooLong,
}

/// Writes values to a product, each in a line of its own. One that is dropped in the middle of a line ends the product's input:
/// nothing is ever written behind a part of a line.
#[derive(Debug)]
pub struct JsonLines {
    stdin: Mutex<Option<StdinPipe>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads from here.
    pub fn new(reader: R) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
        }
    }

    /// The next line without its end; nothing at the end. What is no UTF-8 in it is replaced.
    ///
    /// # Errors
    ///
    /// A [`LineError`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, it has lost nothing: the next call goes on.
    pub async fn next(&mut self) -> Result<Option<String>, LineError> {
        let room = (MAX_LINE_BYTES - self.line.len()) as u64;
        let mut limited = (&mut self.reader).take(room);
        // What was read of the line stands in `line` when this is dropped.
        limited.read_until(b'\n', &mut self.line).await?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        } else if self.line.len() >= MAX_LINE_BYTES {
            return Err(LineError::TooLong);
        } else if self.line.is_empty() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        Ok(Some(match String::from_utf8(line) {
            Ok(line) => line,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }))
    }
}

impl JsonLines {
    /// Writes there.
    pub fn new(stdin: StdinPipe) -> Self {
        Self {
            stdin: Mutex::new(Some(stdin)),
        }
    }

    /// Writes a value. Values of several callers come one after the other.
    ///
    /// # Errors
    ///
    /// [`BrokenPipe`](io::ErrorKind::BrokenPipe) when the product reads no more or the input was closed.
    ///
    /// # Cancel safety
    ///
    /// Dropped while it writes, it closes the product's input.
    pub async fn send(&self, value: &Value) -> io::Result<()> {
        let mut stdin = self.stdin.lock().await;
        // Taken meanwhile: a part of a line is followed by nothing.
        let mut pipe = stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = value.to_string();
        line.push('\n');
        pipe.write_all(line.as_bytes()).await?;
        *stdin = Some(pipe);
        Ok(())
    }

    /// Closes the product's input, when the value that is being written is written.
    pub async fn close(&self) {
        *self.stdin.lock().await = None;
    }
}
