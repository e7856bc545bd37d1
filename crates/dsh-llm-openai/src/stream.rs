//! An answer that comes in pieces.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use dsh_llm::{Chunk, FinishReason, ModelError, ModelStream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::answer::Progress;
use crate::body::Body;
use crate::exchange::Exchange;
use crate::failure::Reporter;

/// How long the usage and the end of the stream are waited for once the answer itself is complete.
const TAIL_TIMEOUT: Duration = Duration::from_secs(5);

/// An answer that comes in pieces. Holds what the last read brought, and nothing of the answer so far.
pub(crate) struct OpenAiStream {
    /// What was read and not yet taken.
    ready: VecDeque<Chunk>,
    /// `None` when nothing more is to be read.
    source: Option<Source>,
    token: CancellationToken,
}

struct Source {
    exchange: Exchange,
    body: Body,
    reporter: Reporter,
    silence: Silence,
}

/// How long nothing came. Only time in which somebody waited counts: a reader that does something else is no silence.
struct Silence {
    limit: Duration,
    waited: Duration,
}

/// Adds to the silence, also when the wait is dropped.
struct Wait<'a> {
    waited: &'a mut Duration,
    began: Instant,
}

/// Nothing came within the limit.
struct TooLong;

impl OpenAiStream {
    pub(crate) fn new(
        exchange: Exchange,
        body: Body,
        reporter: Reporter,
        idle_timeout: Duration,
        token: CancellationToken,
    ) -> Self {
        Self {
            ready: VecDeque::new(),
            source: Some(Source {
                exchange,
                body,
                reporter,
                silence: Silence {
                    limit: idle_timeout,
                    waited: Duration::ZERO,
                },
            }),
            token,
        }
    }

    /// The answer to a request that was cancelled before it was answered.
    pub(crate) fn aborted(token: CancellationToken) -> Self {
        Self {
            ready: VecDeque::from([Chunk::Finish(FinishReason::Aborted)]),
            source: None,
            token,
        }
    }
}

#[async_trait]
impl ModelStream for OpenAiStream {
    async fn next(&mut self) -> Result<Option<Chunk>, ModelError> {
        loop {
            let Some(source) = &mut self.source else {
                return Ok(self.ready.pop_front());
            };
            if self.token.is_cancelled() {
                *self = Self::aborted(self.token.clone());
                continue;
            }
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(Some(chunk));
            }
            let read = tokio::select! {
                biased;
                () = self.token.cancelled() => continue,
                read = source.read(&mut self.ready) => read,
            };
            match read {
                Ok(Progress::More) => {}
                Ok(Progress::Done) => self.source = None,
                Err(error) => {
                    self.source = None;
                    return Err(error);
                }
            }
        }
    }
}

impl Source {
    /// Reads one event, or more bytes where no event is complete.
    async fn read(&mut self, ready: &mut VecDeque<Chunk>) -> Result<Progress, ModelError> {
        match self.body.event(ready)? {
            Some(Progress::More) => return Ok(Progress::More),
            Some(Progress::Done) => return self.end(ready),
            None => {}
        }
        let complete = self.body.is_finished();
        let limit = if complete { TAIL_TIMEOUT } else { Duration::MAX };
        match self.silence.bound(limit, self.exchange.data()).await {
            Ok(Some(Ok(bytes))) => {
                self.body.push(bytes);
                Ok(Progress::More)
            }
            // The answer came whole: what is missing is its formal end.
            Ok(None | Some(Err(_))) | Err(TooLong) if complete => self.end(ready),
            Ok(None) => self.end(ready),
            Ok(Some(Err(error))) => Err(self.reporter.broken(&error)),
            Err(TooLong) => Err(self.reporter.idle(self.silence.limit)),
        }
    }

    fn end(&mut self, ready: &mut VecDeque<Chunk>) -> Result<Progress, ModelError> {
        self.body.end(ready)?;
        Ok(Progress::Done)
    }
}

impl Silence {
    /// Waits for something to come, for what is left of the limit and at most for `at_most`.
    async fn bound<T>(&mut self, at_most: Duration, coming: impl Future<Output = T>) -> Result<T, TooLong> {
        let left = self.limit.min(at_most).saturating_sub(self.waited);
        let wait = Wait {
            waited: &mut self.waited,
            began: Instant::now(),
        };
        let came = timeout(left, coming).await;
        drop(wait);
        let came = came.map_err(|_| TooLong)?;
        self.waited = Duration::ZERO;
        Ok(came)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        *self.waited += self.began.elapsed();
    }
}
