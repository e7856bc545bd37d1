//! What a product writes for people.

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of it is looked at at once.
const CHUNK: usize = 8 * 1024;

/// A product's standard error, read in chunks. Each line of it is in the program's log, at level debug, under the product's
/// name. It may hold what models and people must not see; nothing but the reader has it besides.
#[derive(Debug)]
pub struct LogLines<R> {
    name: String,
    stderr: R,
    chunk: Vec<u8>,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> LogLines<R> {
    /// Reads from here what the product of this name writes.
    pub fn new(name: impl Into<String>, stderr: R) -> Self {
        Self {
            name: name.into(),
            stderr,
            chunk: vec![0; CHUNK],
            line: Vec::new(),
        }
    }

    /// The next chunk; nothing at the end. A pipe that cannot be read has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, it has lost nothing: the next call goes on.
    pub async fn next(&mut self) -> Option<&[u8]> {
        let Ok(read @ 1..) = self.stderr.read(&mut self.chunk).await else {
            self.log_line();
            return None;
        };
        for at in 0..read {
            let byte = self.chunk[at];
            if byte != b'\n' {
                self.line.push(byte);
            }
            if byte == b'\n' || self.line.len() == CHUNK {
                self.log_line();
            }
        }
        Some(&self.chunk[..read])
    }

    fn log_line(&mut self) {
        if !self.line.is_empty() {
            tracing::debug!(product = self.name, "{}", String::from_utf8_lossy(&self.line));
            self.line.clear();
        }
    }
}

/// Reads a product's standard error to its end, as [`LogLines`], and shows each chunk to `look`.
///
/// # Cancel safety
///
/// Dropped, what was not read yet is not looked at.
pub async fn log_lines<R: AsyncRead + Unpin>(name: &str, stderr: R, mut look: impl FnMut(&[u8])) {
    let mut lines = LogLines::new(name, stderr);
    while let Some(chunk) = lines.next().await {
        look(chunk);
    }
}
