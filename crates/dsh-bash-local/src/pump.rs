//! Reads both pipes of a process into its log.

use dsh_output::{OutputLog, Stream};
use tokio::io::{AsyncRead, AsyncReadExt};

const CHUNK: usize = 16 * 1024;

/// Both read ends and where they go. Dropping it closes them: whoever still writes gets a broken pipe.
pub(crate) struct Pump<R> {
    stdout: Option<R>,
    stderr: Option<R>,
    log: OutputLog,
    buffers: Box<[[u8; CHUNK]; 2]>,
}

impl<R: AsyncRead + Unpin> Pump<R> {
    pub(crate) fn new(stdout: R, stderr: R, log: OutputLog) -> Self {
        Self {
            stdout: Some(stdout),
            stderr: Some(stderr),
            log,
            buffers: Box::new([[0; CHUNK]; 2]),
        }
    }

    /// Whether a pipe is still open.
    pub(crate) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Gives both pipes up.
    pub(crate) fn close(&mut self) {
        self.stdout = None;
        self.stderr = None;
    }

    /// Moves what is there, or waits for it; returns after each chunk and each end. Must not be called when no pipe is
    /// open.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: a chunk that was read is in the log before the next point of waiting.
    pub(crate) async fn step(&mut self) {
        let [out, err] = &mut *self.buffers;
        let (stream, read) = tokio::select! {
            read = read(&mut self.stdout, out) => (Stream::Stdout, read),
            read = read(&mut self.stderr, err) => (Stream::Stderr, read),
        };
        match (stream, read) {
            (Stream::Stdout, 0) => self.stdout = None,
            (Stream::Stderr, 0) => self.stderr = None,
            (Stream::Stdout, count) => self.log.append(stream, &self.buffers[0][..count]),
            (Stream::Stderr, count) => self.log.append(stream, &self.buffers[1][..count]),
        }
    }
}

/// How much was read; an error of a pipe is its end. Waits forever on a closed one.
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>, buffer: &mut [u8]) -> usize {
    match pipe {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
