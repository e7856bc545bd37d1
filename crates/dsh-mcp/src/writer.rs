//! The one place that writes to the client and knows what reached it.
//!
//! An answer is **delivered** when its write returned and nobody had given it up by then; the notices added to it are
//! leased for exactly that long. A client that cancels while its answer is being written ignores that answer, so
//! nothing in it counts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use dsh_agent::{Agent, InboxLease};
use dsh_agent_core::Served;
use dsh_llm::text_of;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use crate::calls::{Calls, Kind};

/// How long writing may go on after the connection is over: a client that closed its input may still read, one that
/// is gone must not hold the end up.
const LINGER: Duration = Duration::from_millis(500);

/// Where an answer to a `subscriptions/listen` and its notifications name the request they belong to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Something to be written, and who wants to know that it was.
pub(crate) struct Job {
    frame: Frame,
    written: oneshot::Sender<io::Result<()>>,
}

/// What is written.
pub(crate) enum Frame {
    /// The answer to the request with this id of ours.
    Answer(i64, Value),
    /// A notification, or an answer to something that was never let in.
    Message(Value),
}

/// Writes what is queued, one message after the other.
pub(crate) struct Writer<W> {
    output: W,
    calls: Calls,
    agent: Arc<Agent>,
    broken: bool,
}

impl Job {
    pub(crate) fn new(frame: Frame) -> (Self, oneshot::Receiver<io::Result<()>>) {
        let (written, told) = oneshot::channel();
        (Self { frame, written }, told)
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub(crate) fn new(output: W, calls: Calls, agent: Arc<Agent>) -> Self {
        Self {
            output,
            calls,
            agent,
            broken: false,
        }
    }

    /// Runs until nobody can queue anything any more.
    pub(crate) async fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(Job { frame, written }) = jobs.recv().await {
            let result = match frame {
                Frame::Answer(id, message) => self.answer(id, message).await,
                Frame::Message(mut message) => {
                    self.name_subscription(&mut message, "params");
                    self.put(&message).await
                }
            };
            // Whoever asked may be gone; what was written is settled here either way.
            drop(written.send(result));
        }
    }

    /// Writes one answer and settles what it told.
    async fn answer(&mut self, id: i64, mut message: Value) -> io::Result<()> {
        let Some(addressee) = self.calls.begin_answer(id) else {
            return Ok(());
        };
        self.name_subscription(&mut message, "result");
        message["id"] = json!(addressee.client);
        let notices = match addressee.kind {
            Kind::ToolCall => self.add_notices(&mut message),
            Kind::Other => None,
        };
        let written = self.put(&message).await;
        // The reader may take a cancellation or the end in at any moment. Whichever of it and `finish` comes first
        // under the lock of the table decides; here is the only place that delivers.
        if let (Ok(()), Some(deliveries)) = (&written, self.calls.finish(id)) {
            deliveries.deliver_all();
            if let Some(notices) = notices {
                notices.commit();
            }
        }
        written
    }

    /// Adds the pending notices to a tool result as one text block that begins with a newline.
    fn add_notices(&self, message: &mut Value) -> Option<InboxLease> {
        let content = message.get_mut("result")?.get_mut("content")?.as_array_mut()?;
        let lease = self.agent.inbox().lease();
        if lease.is_empty() {
            return None;
        }
        let texts: Vec<_> = lease
            .messages()
            .iter()
            .map(|notice| text_of(&notice.content))
            .collect();
        content.push(json!({"type": "text", "text": format!("\n{}", texts.join("\n"))}));
        Some(lease)
    }

    /// A subscription is known to the client by the id of its own request.
    fn name_subscription(&self, message: &mut Value, part: &str) {
        let named = message
            .get_mut(part)
            .and_then(|part| part.get_mut("_meta")?.get_mut(SUBSCRIPTION));
        if let Some(named) = named
            && let Some(client) = named.as_i64().and_then(|id| self.calls.client_of(id))
        {
            *named = json!(client);
        }
    }

    /// Writes one line. A failure ends the connection: half a line may be out, so nothing can follow it.
    async fn put(&mut self, message: &Value) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        let mut line = message.to_string();
        line.push('\n');
        let ended = self.calls.ended().clone();
        let write = async {
            self.output.write_all(line.as_bytes()).await?;
            self.output.flush().await
        };
        let too_late = async {
            ended.cancelled().await;
            tokio::time::sleep(LINGER).await;
        };
        let written = tokio::select! {
            biased;
            written = write => written,
            () = too_late => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        if let Err(error) = &written {
            tracing::info!("mcp: the client no longer reads: {error}");
            self.broken = true;
            self.calls.end(Served::OutputFailed);
        }
        written
    }
}
