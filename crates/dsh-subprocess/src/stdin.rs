//! A standard input that is written while its process runs.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;

/// The writing end of a process's standard input.
///
/// What is written is in the pipe when the write returns: there is nothing to flush. A write waits, without holding a
/// thread, while the pipe is full (64 KiB on most systems). The process sees the end of its input when this is shut down
/// or dropped; that ends nothing else, and neither does the end of the process end this.
///
/// Once nobody can read it any more, a write fails with [`BrokenPipe`](io::ErrorKind::BrokenPipe), also one that waited.
/// No signal comes with that where SIGPIPE is ignored, as in every Rust program that did not ask for another
/// disposition.
///
/// ```
/// use dsh_subprocess::{Launcher, ProcessSpec, Stdin};
/// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let mut spec = ProcessSpec::new("cat", "/");
/// spec.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
/// spec.stdin = Stdin::Pipe;
/// let started = Launcher::groups().spawn(spec).await?;
/// let mut stdin = started.stdin.ok_or("asked for")?;
/// let mut lines = BufReader::new(started.stdout).lines();
///
/// for request in ["{\"id\":1}", "{\"id\":2}"] {
///     stdin.write_all(format!("{request}\n").as_bytes()).await?;
///     assert_eq!(lines.next_line().await?.as_deref(), Some(request));
/// }
/// drop(stdin);
/// assert_eq!(lines.next_line().await?, None);
/// assert!(started.tree.ended().await.survivors.is_empty());
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Debug)]
pub struct StdinPipe {
    /// `None` when it was shut down.
    pipe: Option<pipe::Sender>,
}

impl StdinPipe {
    pub(crate) fn new(write: OwnedFd) -> io::Result<StdinPipe> {
        let pipe = pipe::Sender::from_owned_fd(write)?;
        Ok(StdinPipe { pipe: Some(pipe) })
    }
}

impl AsyncWrite for StdinPipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.pipe {
            Some(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.pipe = None;
        Poll::Ready(Ok(()))
    }
}
