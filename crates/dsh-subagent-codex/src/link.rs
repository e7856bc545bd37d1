//! A running app server, and both directions of its wire.
//!
//! Its end has two signs, which come in any order: it exits, and it stops to talk. Whichever comes first, the other is
//! waited for, but no longer than the grace: what was in the pipes is heard, and how it exited is known, unless something
//! that it started holds the pipes open.

use std::pin::Pin;
use std::time::Duration;

use dsh_agent::BoxError;
use dsh_subagent_process::{JsonLines, Lines, LogLines, Product, Streams};
use dsh_subprocess::LeaderExit;
use serde_json::Value;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::permission::Fact;
use crate::scanner::Scanner;

/// How many frames may wait for the app server to read them. A run has a handful; who does not read more is not listening.
const OUTBOX: usize = 64;

/// A running app server.
pub(crate) struct Link {
    product: Product,
    frames: Lines<pipe::Receiver>,
    frames_open: bool,
    log: LogLines<pipe::Receiver>,
    log_open: bool,
    scanner: Scanner,
    outbox: mpsc::Sender<Value>,
    writer: Pin<Box<dyn Future<Output = BoxError> + Send>>,
    writing: bool,
    exit: Option<LeaderExit>,
    grace: Duration,
    closes: Option<Instant>,
    fault: Option<BoxError>,
}

/// What was observed.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line of the wire.
    Line(String),
    /// A signature in what it writes for people.
    Sign(Fact),
    /// Nothing more will come.
    End,
}

/// What an app server may still write when nobody listens any more.
pub(crate) struct Rest {
    frames: Lines<pipe::Receiver>,
    log: LogLines<pipe::Receiver>,
}

impl Link {
    /// Speaks to this one. What it writes for people is logged under the name.
    pub(crate) fn new(name: &str, product: Product, streams: Streams, grace: Duration) -> Self {
        let (outbox, mut queue) = mpsc::channel(OUTBOX);
        let requests = JsonLines::new(streams.stdin);
        let writer = async move {
            while let Some(frame) = queue.recv().await {
                if let Err(error) = requests.send(&frame).await {
                    return error.into();
                }
            }
            "nothing more is said to it".into()
        };
        Self {
            product,
            frames: Lines::new(streams.stdout),
            frames_open: true,
            log: LogLines::new(name, streams.stderr),
            log_open: true,
            scanner: Scanner::default(),
            outbox,
            writer: Box::pin(writer),
            writing: true,
            exit: None,
            grace,
            closes: None,
            fault: None,
        }
    }

    /// Says this as soon as it is listened to.
    pub(crate) fn send(&mut self, frame: Value) {
        if self.outbox.try_send(frame).is_err() && self.writing {
            self.writing = false;
            self.failed("the app server does not read".into());
        }
    }

    /// What is observed next.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, it has lost nothing.
    pub(crate) async fn next(&mut self) -> Heard {
        loop {
            if self.exit.is_some() && !self.frames_open && !self.log_open {
                return Heard::End;
            }
            let closes = self.closes;
            let closed = async move {
                match closes {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            // In no fixed order: who never stops to talk is answered all the same, its log is read, and its end comes.
            tokio::select! {
                line = self.frames.next(), if self.frames_open => match line {
                    Ok(Some(line)) => return Heard::Line(line),
                    Ok(None) => self.frames_open = false,
                    Err(error) => {
                        self.frames_open = false;
                        self.failed(error.into());
                    }
                },
                error = &mut self.writer, if self.writing => {
                    self.writing = false;
                    self.failed(error);
                }
                chunk = self.log.next(), if self.log_open => match chunk {
                    Some(chunk) => match self.scanner.scan(chunk) {
                        Some(fact) => return Heard::Sign(fact),
                        None => continue,
                    },
                    None => {
                        self.log_open = false;
                        continue;
                    }
                },
                exit = self.product.exit(), if self.exit.is_none() => self.exit = Some(exit),
                () = closed => return Heard::End,
            }
            self.closes.get_or_insert_with(|| Instant::now() + self.grace);
        }
    }

    /// How it ended, if it has.
    pub(crate) fn exited(&self) -> Option<LeaderExit> {
        self.exit.or_else(|| self.product.exited())
    }

    /// Whether its end has begun: [`End`](Heard::End) comes within the grace.
    pub(crate) fn is_closing(&self) -> bool {
        self.closes.is_some()
    }

    /// What went wrong with the pipes, once.
    pub(crate) fn fault(&mut self) -> Option<BoxError> {
        self.fault.take()
    }

    /// Says what can be said at once, and then no more: its input ends.
    pub(crate) async fn leave(self) -> Rest {
        let Self {
            frames,
            log,
            outbox,
            mut writer,
            writing,
            ..
        } = self;
        drop(outbox);
        if writing {
            tokio::select! {
                biased;
                _ = &mut writer => {}
                () = std::future::ready(()) => {}
            }
        }
        Rest { frames, log }
    }

    fn failed(&mut self, error: BoxError) {
        self.fault.get_or_insert(error);
        self.closes.get_or_insert_with(|| Instant::now() + self.grace);
    }
}

impl Rest {
    /// Reads it to its end, so that nothing waits for a reader.
    pub(crate) async fn drain(mut self) {
        let frames = async { while let Ok(Some(_)) = self.frames.next().await {} };
        let log = async { while self.log.next().await.is_some() {} };
        tokio::join!(frames, log);
    }
}
